import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Calendar, type CalendarUnit, isTimeZone } from '../../../../src/core/base/calendar.ts'

const at = (text: string) => Date.parse(text)

const HOUR_MS = 3_600_000

test.each<[CalendarUnit, string, string, string, number, number]>([
  ['day', 'UTC', '2026-11-21T12:00:00Z', '2026-11-21T00:00Z', 24, 24],
  // Daylight saving time in Berlin: a day of 23 hours, then a day of 25 hours.
  ['day', 'Europe/Berlin', '2026-03-29T12:00:00Z', '2026-03-28T23:00Z', 23, 24],
  ['day', 'Europe/Berlin', '2026-10-25T12:00:00Z', '2026-10-24T22:00Z', 25, 24],
  ['day', 'America/New_York', '2026-11-01T04:00:00Z', '2026-11-01T04:00Z', 25, 24],
  // Changes at midnight: the day begins at one o'clock, or the hour before midnight occurs twice.
  ['day', 'America/Sao_Paulo', '2018-11-04T12:00:00Z', '2018-11-04T03:00Z', 23, 24],
  ['day', 'America/Sao_Paulo', '2018-02-17T12:00:00Z', '2018-02-17T02:00Z', 25, 24],
  ['day', 'Africa/Cairo', '2026-04-24T12:00:00Z', '2026-04-23T22:00Z', 23, 24],
  ['day', 'Asia/Kathmandu', '2026-01-01T00:00:00Z', '2025-12-31T18:15Z', 24, 24],
  ['day', 'Pacific/Kiritimati', '2026-01-01T09:59:59Z', '2025-12-31T10:00Z', 24, 24],
  // Samoa had no 30 December 2011.
  ['day', 'Pacific/Apia', '2011-12-30T09:00:00Z', '2011-12-29T10:00Z', 24, 24],
  ['week', 'UTC', '2026-11-22T23:59:59Z', '2026-11-16T00:00Z', 168, 168],
  ['week', 'Europe/Berlin', '2026-03-29T22:00:00Z', '2026-03-29T22:00Z', 168, 168],
  ['month', 'UTC', '2026-01-31T12:00:00Z', '2026-01-01T00:00Z', 744, 672],
  ['month', 'UTC', '2028-02-29T12:00:00Z', '2028-02-01T00:00Z', 696, 744],
  ['month', 'UTC', '2026-12-31T23:59:59Z', '2026-12-01T00:00Z', 744, 744],
  ['month', 'Europe/Berlin', '2026-10-31T22:59:59Z', '2026-09-30T22:00Z', 745, 720],
  ['month', 'America/Los_Angeles', '2026-03-31T12:00:00Z', '2026-03-01T08:00Z', 743, 720],
])(
  'The %s in %s that contains %s begins at %s and has %d hours, and the next one has %d hours.',
  (unit, zone, now, begun, hours, next) => {
    const [start, end, nextEnd] = new Calendar(unit, zone).periodAt(at(now))
    expect(start).toBe(at(begun))
    expect([end - start, nextEnd - end]).toEqual([hours * HOUR_MS, next * HOUR_MS])
  },
)

test('One calendar finds the period of any instant, also of an earlier one.', () => {
  const days = new Calendar('day', 'UTC')
  const [noon, day] = [at('2026-11-21T12:00:00Z'), 24 * HOUR_MS]
  for (const instant of [noon, noon + day / 2 - 1, noon + day / 2, noon - 10 * day]) {
    const start = instant - (instant % day)
    expect(days.periodAt(instant)).toEqual([start, start + day, start + 2 * day])
  }
})

/** The local period of an instant, by a different formatter than the code under test uses. */
const wall = (zone: string, unit: CalendarUnit) => {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short' })
  return (instant: number) => {
    const date = format.format(instant)
    if (unit === 'month') return date.slice(0, 7)
    if (unit === 'day') return date
    const days = Math.floor(Date.parse(date) / 86_400_000)
    return String(Math.floor((days + 3) / 7)) // 1 January 1970 was a Thursday
  }
}

test('In every time zone the local period changes at start, end and next end, and not between them.', () => {
  const zone = fc.constantFrom(...Intl.supportedValuesOf('timeZone'))
  const unit = fc.constantFrom<CalendarUnit>('day', 'week', 'month')
  const now = fc.integer({ min: at('2015-01-01T00:00Z'), max: at('2040-01-01T00:00Z') })
  fc.assert(
    fc.property(
      zone,
      unit,
      now,
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (zone, unit, now, share) => {
        const [start, end, nextEnd] = new Calendar(unit, zone).periodAt(now)
        const shown = wall(zone, unit)
        expect(start <= now && now < end).toBe(true)
        const within = start + Math.floor(share * (end - start - 1))
        expect([start, within, end - 1].map(shown)).toEqual(Array(3).fill(shown(now)))
        expect(shown(start - 1)).not.toBe(shown(start))
        expect(shown(end)).not.toBe(shown(now))
        expect(shown(nextEnd - 1)).toBe(shown(end))
        expect(shown(nextEnd)).not.toBe(shown(end))
      },
    ),
    { numRuns: 300 },
  )
})

test('A time zone is a name that the runtime knows, or an offset.', () => {
  const names = ['UTC', 'Europe/Berlin', 'Etc/GMT+12', '+02:00']
  const others = ['', 'Berlin', 'Europe/Nowhere', 7, undefined]
  expect([...names, ...others].filter(isTimeZone)).toEqual(names)
})
