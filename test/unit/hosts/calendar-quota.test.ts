/** Quotas of a day, week or month in a time zone. */
import { expect, test } from 'vitest'
import type { PolicyOptions } from '../../../src/core/config/options.ts'
import { TestClock } from '../../../src/testing/clock.ts'
import { useGateway } from '../../support/gateway.ts'

const cases: [window: 'day' | 'week' | 'month', timeZone: string | undefined][] = [
  ['day', undefined],
  ['day', 'Europe/Berlin'],
  ['day', 'Pacific/Kiritimati'],
  ['week', 'America/New_York'],
  ['month', 'Asia/Kathmandu'],
  ['month', 'Etc/GMT+12'],
]
const pathOf = (window: string, timeZone = 'UTC') => `/${window}/${timeZone.replace(/\W/g, '-')}`

const clock = new TestClock()
const gateway = useGateway({
  clock,
  config: {
    policies: cases.map(
      ([window, timeZone], index): PolicyOptions => ({
        name: `quota-${index}`,
        algorithm: 'fixed-window',
        limit: 2,
        window,
        ...(timeZone && { timeZone }),
        match: { path: pathOf(window, timeZone) },
      }),
    ),
  },
})

/** The instant at which the next day, week or month begins. A binary search with Intl finds it, without our code. */
function endOf(window: string, timeZone: string, now: number): number {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short' })
  const shown = (instant: number) => {
    const date = format.format(instant)
    if (window !== 'week') return window === 'day' ? date : date.slice(0, 7)
    return String(Math.floor((Date.parse(date) / 86_400_000 + 3) / 7)) // weeks begin on Monday
  }
  let [before, after] = [now, now + 32 * 86_400_000]
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2)
    if (shown(middle) === shown(now)) before = middle
    else after = middle
  }
  return after
}

test.each(cases)(
  'A quota of a %s in %s ends when the calendar says.',
  async (window, timeZone = 'UTC') => {
    const ask = () => gateway.fetch(pathOf(window, timeZone))
    clock.advance(endOf(window, timeZone, clock.now()) - clock.now())
    const begun = clock.now()
    const end = endOf(window, timeZone, begun)
    const answers = [await ask(), await ask(), await ask()]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429])
    const seconds = (from: number) => Math.ceil((end - from) / 1000)
    const waits = answers.map(({ headers }) =>
      Number(/;t=(\d+)/.exec(headers.get('ratelimit')!)![1]),
    )
    waits.push(Number(answers[2]!.headers.get('retry-after')))
    for (const wait of waits) {
      expect(wait).toBeLessThanOrEqual(seconds(begun))
      expect(wait).toBeGreaterThanOrEqual(seconds(clock.now()))
    }
    // The policy reports the true length, also if the period contains a change of the clock.
    let start = endOf(window, timeZone, begun - 64 * 86_400_000)
    for (let next = start; next <= begun; next = endOf(window, timeZone, next)) start = next
    const length = /;w=(\d+)/.exec(answers[0]!.headers.get('ratelimit-policy')!)![1]
    expect(Number(length) * 1000).toBe(end - start)

    clock.advance(end - clock.now() - 10_000)
    expect((await ask()).status).toBe(429)
    clock.advance(10_000)
    expect((await ask()).status).toBe(200)
  },
)
