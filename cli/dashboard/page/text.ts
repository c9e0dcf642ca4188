/** Formats values as text. */

const numbers = new Intl.NumberFormat('en', { maximumFractionDigits: 2 })
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const dollars = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD' })
const shares = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 1 })
const time = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const
const day = { month: 'short', day: 'numeric' } as const
const times = new Intl.DateTimeFormat('en', { ...day, ...time, second: '2-digit' })
const clocks = new Intl.DateTimeFormat('en', time)
const days = new Intl.DateTimeFormat('en', day)

export const numberText = (value: number): string => numbers.format(value)
/** A number of at most five characters: `1.2M`. */
export const compactText = (value: number): string => compact.format(value)
export const dollarText = (value: number): string => dollars.format(value)

/** A number with its unit, or a dash for an unknown one. */
export const rateText = (value: number | undefined, unit: string, text = numberText): string =>
  value === undefined ? '–' : `${text(value)} ${unit}`

export const shareText = (part: number, whole: number): string =>
  whole > 0 ? shares.format(part / whole) : '–'

const units: [string, number][] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
]

/** A duration in its largest unit: `1 h`, `1.5 min`, `20 ms`. */
export function durationText(ms: number | null): string {
  if (ms === null) return 'never'
  const [name, size] = units.find(([, size]) => ms >= size) ?? ['ms', 1]
  return `${numberText(ms / size)} ${name}`
}

/** An age in whole units: `2 s`, `3 min`. */
export function ageText(ms: number): string {
  const [name, size] = units.find(([, size]) => ms >= size) ?? ['s', 1000]
  return `${Math.floor(Math.max(0, ms) / size)} ${name}`
}

/** The upper bound of a quantile. */
export function boundText(ms: number | undefined, bounds: number[]): string {
  if (ms === undefined) return '–'
  return ms === Number.POSITIVE_INFINITY ? `> ${bounds.at(-1)} ms` : `≤ ${ms} ms`
}

/** A time with its day: `Nov 28, 15:20:05`. */
export const timeText = (ms: number): string => times.format(ms)
/** The lines of a time on an axis: `15:20`, and the day at its first time. */
export const axisText = (ms: number, isNewDay: boolean): string[] =>
  isNewDay ? [clocks.format(ms), days.format(ms)] : [clocks.format(ms)]

/** The name of a policy, or a text for the requests without one. */
export const policyText = (name: string): string => name || '(no policy)'
