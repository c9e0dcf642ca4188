/** Reads how long the other side wants no requests. It is strict: what has no clear meaning is absent. */

/** The wait after a refusal that tells none, or a time that has passed, ms. */
export const SHORTEST_MS = 1_000
/** The longest wait that is believed, ms: a calendar day has up to 25 hours, and daily quotas end with it. */
const BELIEVED_MS = 90_000_000
/** The wait instead of a longer one, ms. A longer one is a wrong unit, a wrong clock, or a quota of a month. */
const DOUBTED_MS = 3_600_000

/** The fields with the time of the next attempt. The first one that can be read counts. */
const AFTER = [
  'retry-after-ms', // OpenAI
  'x-ms-retry-after-ms', // Azure
  'retry-after', // RFC 9110, 10.2.3
]

/** @returns whether a response tells when to try again, if only by a value that cannot be read */
export const tellsAfter = (headers: Headers): boolean => AFTER.some((name) => headers.get(name))

/** The wait that `Retry-After` and its relatives tell, in whole ms above 0. `undefined` if none can be read. */
export const retryAfterOf = (headers: Headers, now: number): number | undefined =>
  AFTER.map((name) => waitIn(fieldOf(headers, name), name, now)).find(Boolean)

/**
 * The wait until the limits of the other side have reset, in whole ms above 0: those with nothing left, or all if none says so. `undefined` if
 * none can be read.
 * @param reports those of the field `RateLimit`
 */
export function resetOf(
  headers: Headers,
  now: number,
  reports: { reset?: unknown; left?: number | undefined }[],
): number | undefined {
  let [spent, others] = [0, 0]
  const add = (name: string, reset: unknown, left: number | undefined) => {
    const waitMs = waitIn(`${reset}`, name, now, UNITS) ?? 0
    if (left === 0) spent = Math.max(spent, waitMs)
    else others = Math.max(others, waitMs)
  }
  for (const { reset, left } of reports) add('ratelimit', reset, left)
  // Draft 6 and the vendors: X-RateLimit-Reset, X-Rate-Limit-Reset, X-RateLimit-Reset-Tokens, Anthropic-RateLimit-Tokens-Reset …
  for (const name of headers.keys()) {
    if (!name.includes('limit') || !name.includes('reset')) continue
    const remaining = name.replace('reset', 'remaining').replace('-after', '')
    add(name, fieldOf(headers, name), numberOf(fieldOf(headers, remaining)))
  }
  return spent || others || undefined
}

/** The value of a field, empty if there is none. Proxies may repeat it: what is the same is one value, also of a date with its comma. */
export const fieldOf = (headers: Headers, name: string): string =>
  [...new Set((headers.get(name) ?? '').split(',').map((part) => part.trim()))].join(', ')

/** A decimal number without sign and exponent. */
export const numberOf = (text: string): number | undefined =>
  /^\d+(\.\d+)?$/.test(text) ? Number(text) : undefined

/** No value of a wait has more characters. */
const MAX_LENGTH = 50

/** The wait that the value of a field tells: a number, a date, or with `units` a duration. */
function waitIn(text: string, name: string, now: number, units = {}): number | undefined {
  if (!text || text.length > MAX_LENGTH) return undefined
  const waitMs = [
    numberWait(numberOf(text) ?? Number.NaN, name.endsWith('-ms') ? 1 : 1000, now),
    httpDate(text) - now,
    isoDate(text) - now,
    durationIn(text, units),
  ].find((ms) => ms > -Infinity)
  if (waitMs === undefined) return undefined
  // Errors of floating point are below 5 µs. They are no fraction to round up.
  const whole = Math.ceil(Number(waitMs.toFixed(2)))
  if (whole <= 0) return SHORTEST_MS
  if (whole > BELIEVED_MS) return DOUBTED_MS
  return whole
}

/** A number from 1e9 on is a time since the epoch. Its size tells s, ms, µs and ns apart for all times between 2001 and 5138. */
function numberWait(number: number, unitMs: number, now: number): number {
  if (number < 1e9) return number * unitMs
  let seconds = number
  while (seconds >= 1e11) seconds /= 1000
  return seconds * 1000 - now
}

/** The time of a date in the three forms of RFC 9110, 5.6.7, or `NaN`. `Date.parse` reads other texts too, so the date must come out as it was. */
function httpDate(text: string): number {
  const normal = text
    // RFC 850. A date of another century has another day of the week, so it is none.
    .replace(/^(...)\w{0,5}day, (..)-(...)-(\d\d) /, '$1, $2 $3 20$4 ')
    // That of asctime in C
    .replace(
      /^(...) (...) ([ \d]\d) (.{8}) (\d{4})$/,
      (_, day, month, date, time, year) =>
        `${day}, ${date.replace(' ', '0')} ${month} ${year} ${time} GMT`,
    )
  const parsed = Date.parse(normal)
  return new Date(parsed).toUTCString() === normal ? parsed : Number.NaN
}

/** The time of RFC 3339, also without seconds (Jira), or `NaN`. A time without an offset has no clear meaning. */
function isoDate(text: string): number {
  const [, date = '', time, fraction = '', offset = ''] =
    /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?)(\.\d+)?(Z|[+-][012]\d:?\d\d)$/.exec(text) ?? []
  if (new Date(date).getUTCDate() !== Number(date.slice(8))) return Number.NaN // no such day
  const zone = offset.replace(/:?(\d\d)$/, ':$1')
  return Date.parse(`${date}T${time}${zone}`) + Number(`0${fraction}`) * 1000
}

/** The units of a duration, ms. A wait below 1 ms makes no sense. */
const UNITS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 }

/** A duration such as `6m0s`, `1.5s` or `120ms`, or `NaN`. */
function durationIn(text: string, units: Record<string, number>): number {
  let sum = 0
  const rest = text.replace(/(\d+(?:\.\d+)?)([a-z]+)/g, (_, number, unit) => {
    sum += number * (units[unit] ?? Number.NaN)
    return ''
  })
  return rest ? Number.NaN : sum
}
