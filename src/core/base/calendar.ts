/** Calendar periods in a time zone: days, weeks that start on Monday (ISO 8601), and months. Exact across daylight-saving changes. */

export type CalendarUnit = 'day' | 'week' | 'month'

/** A period and the one after it, in ms since the epoch: [start, end) and [end, nextEnd). */
export type Period = [start: number, end: number, nextEnd: number]

const DAY_MS = 86_400_000

/** Reports whether the runtime supports a time zone with this IANA name, such as `Europe/Berlin`. */
export function isTimeZone(name: unknown): name is string {
  if (typeof name !== 'string' || name === '') return false
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }) !== undefined
  } catch {
    return false
  }
}

/** The periods of a quota. A class, so that a configuration with one is data, and a build has the code only for a quota that needs it. */
export class Calendar {
  declare readonly unit: CalendarUnit
  declare readonly timeZone: string
  #dateOf: ((instant: number) => number) | undefined
  #period: Period = [0, 0, 0]

  constructor(unit: CalendarUnit, timeZone: string) {
    this.unit = unit
    this.timeZone = timeZone
  }

  /** The period of an instant, ms since the epoch. Keeps the last one, because finding one takes about a hundred date formattings. */
  periodAt(now: number): Period {
    if (now < this.#period[0] || now >= this.#period[1]) {
      this.#dateOf ??= localDate(this.timeZone)
      const dateOf = this.#dateOf
      const first = firstDate(this.unit, dateOf(now))
      const [start, end, ...later] = [0, 1, 2, 3].map((ahead) =>
        firstInstant(dateOf, addUnits(this.unit, first, ahead)),
      ) as [number, number, number, number]
      // A zone that moved across the date line skipped a day: the period of that day is empty.
      this.#period = [start, end, later.find((instant) => instant > end)!]
    }
    return this.#period
  }
}

/** The local date of an instant in a zone, as the ms of that date's midnight in UTC, so that dates can be compared and added to. */
function localDate(timeZone: string): (instant: number) => number {
  const format = new Intl.DateTimeFormat('en-u-ca-iso8601', {
    timeZone,
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
  })
  return (instant) => {
    const parts = Object.fromEntries(
      format.formatToParts(instant).map(({ type, value }) => [type, Number(value)]),
    )
    return Date.UTC(parts.year!, parts.month! - 1, parts.day!)
  }
}

/** The first instant at which the local date is `date` or later. A binary search needs no time zone rules. */
function firstInstant(dateOf: (instant: number) => number, date: number): number {
  let [before, after] = [date - DAY_MS, date + DAY_MS] // no zone differs from UTC by a day
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2)
    if (dateOf(middle) >= date) after = middle
    else before = middle
  }
  return after
}

function firstDate(unit: CalendarUnit, date: number): number {
  const day = new Date(date)
  if (unit === 'month') return Date.UTC(day.getUTCFullYear(), day.getUTCMonth(), 1)
  return unit === 'week' ? date - ((day.getUTCDay() + 6) % 7) * DAY_MS : date
}

function addUnits(unit: CalendarUnit, date: number, count: number): number {
  if (unit !== 'month') return date + count * DAY_MS * (unit === 'week' ? 7 : 1)
  const day = new Date(date)
  return Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + count, 1)
}
