/** Formats values as text. */

const numbers = new Intl.NumberFormat('en', { maximumFractionDigits: 2 })
const dollars = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD' })
const shares = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 1 })

export const numberText = (value: number): string => numbers.format(value)
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

/** The upper bound of a quantile. */
export function boundText(ms: number | undefined, bounds: number[]): string {
  if (ms === undefined) return '–'
  return ms === Number.POSITIVE_INFINITY ? `> ${bounds.at(-1)} ms` : `≤ ${ms} ms`
}

export const timeText = (ms: number): string => new Date(ms).toLocaleTimeString()

/** The name of a policy, or a text for the requests without one. */
export const policyText = (name: string): string => name || '(no policy)'
