const units = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/** A duration: a whole number of milliseconds, or a number with a unit such as `'500ms'`, `'10s'`, `'1m'`, `'1h'`, `'1d'`, `'1w'`. */
export type Duration = number | `${number}${'' | ' '}${'ms' | 's' | 'm' | 'h' | 'd' | 'w'}`

/** The longest duration, ms: 71,000 years. Sums of three such numbers and a time are exact in a double. */
export const MAX_MS = 2 ** 51

/** Milliseconds of a duration. Returns `undefined` if the input is not a duration, or not a whole number from 1 to `MAX_MS`. */
export function parseDuration(input: unknown): number | undefined {
  let milliseconds: number | undefined
  if (typeof input === 'number') milliseconds = input
  if (typeof input === 'string') {
    const [, number, unit] = /^(\d+(?:\.\d+)?) ?(ms|s|m|h|d|w)$/.exec(input) ?? []
    if (unit) milliseconds = toWhole(Number(number) * units[unit as keyof typeof units])
  }
  return milliseconds !== undefined &&
    Number.isInteger(milliseconds) &&
    milliseconds >= 1 &&
    milliseconds <= MAX_MS
    ? milliseconds
    : undefined
}

/** Removes the error of binary fractions: 1.1 h is 3,960,000 ms, not 3,960,000.0000000005. */
const toWhole = (number: number) =>
  Math.abs(number - Math.round(number)) < 1e-6 ? Math.round(number) : number

const spans = [
  ['d', 86_400_000, 'day'],
  ['h', 3_600_000, 'hour'],
  ['m', 60_000, 'minute'],
  ['s', 1_000, 'second'],
] as const

/** A duration in its largest whole unit: `90s`, `1h`. */
export function spanText(ms: number): string {
  const [unit, size] = spans.find(([, size]) => ms % size === 0) ?? ['ms', 1]
  return `${ms / size}${unit}`
}

/** A wait as people read it: rounded up, in the largest unit of which it has more than two. At least a second. */
export function waitOf(ms: number) {
  const [short, size, unit] = spans.find(([, size]) => ms > 2 * size) ?? spans[3]
  return { count: Math.ceil(ms / size) || 1, short, unit, size }
}

/** `43 minutes`. The exact wait stands beside it, as a number. */
export function waitText(ms: number): string {
  const { count, unit } = waitOf(ms)
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}
