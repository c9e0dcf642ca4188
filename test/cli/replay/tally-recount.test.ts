/** A report agrees with a second count that goes through all requests again for each number. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Decided } from '../../../cli/replay/decide/verdict.ts'
import { createTally } from '../../../cli/replay/report/tally.ts'
import type { Bounds } from '../../../cli/replay/report/types.ts'
import { contextOf, decidedAs, lineAt, START, verdict } from '../../support/replay-report.ts'

const policies = [
  { name: 'a', mode: 'enforce' },
  { name: 'b', mode: 'enforce' },
  { name: 'c', mode: 'shadow' },
] as const

const refusals = fc.record({ enforced: fc.subarray(['a', 'b']), shadow: fc.subarray(['c']) })
const verdictOf = ({ enforced, shadow }: { enforced: string[]; shadow: string[] }) =>
  verdict(['a', 'b', 'c'], enforced, shadow)

const request = fc.record({
  waitMs: fc.oneof(fc.nat(2000), fc.nat(200_000), fc.nat(40_000_000)),
  ip: fc.constantFrom('192.0.2.1', '192.0.2.2', '198.51.100.1', '2001:db8::1', '2001:db8::2'),
  status: fc.constantFrom(200, 301, 403, 404, 429, 500, undefined),
  target: fc.constantFrom('/', '/a', '/a?b', '/c?d=1'),
  userAgent: fc.constantFrom('one', 'two', undefined),
  spread: refusals,
  burst: fc.option(refusals, { nil: undefined }),
  applies: fc.boolean(),
})
const log = fc.array(request, { minLength: 1, maxLength: 80 }).map((requests) => {
  let seconds = 0
  return requests.map(({ waitMs, spread, burst, applies, ...more }): Decided => {
    seconds += waitMs / 1000
    const line = { ...lineAt(seconds, more), time: Math.round(START + seconds * 1000) }
    if (!applies) return decidedAs(line, verdict([]))
    return decidedAs(line, verdictOf(spread), burst && verdictOf(burst))
  })
})

/** Counts in both replays, by a filter. */
const bounds = <T>(
  items: readonly T[],
  counts: (item: T, side: 'spread' | 'burst') => boolean,
): Bounds => {
  const both = (['spread', 'burst'] as const).map(
    (side) => items.filter((item) => counts(item, side)).length,
  )
  return { low: Math.min(...both), high: Math.max(...both) }
}
const clientOf = ({ line }: Decided) => (line.ip!.includes(':') ? '2001:db8::/64' : line.ip!)

test('A report of random decisions agrees with a second count.', () => {
  fc.assert(
    fc.property(log, fc.nat(5), (all, cut) => {
      const tally = createTally({ policies })
      tally.add(all.slice(0, cut))
      tally.add(all.slice(cut))
      const report = tally.result(contextOf())
      const byClient = Map.groupBy(all, clientOf)
      const clients = [...byClient.values()]

      expect([report.from, report.to]).toEqual([all[0]!.line.time, all.at(-1)!.line.time])
      expect(report.total).toMatchObject({
        requests: all.length,
        refused: bounds(all, (one, side) => !one[side].allowed),
        clients: bounds(clients, (own, side) => own.some((one) => !one[side].allowed)),
      })
      expect(report.wouldRefuse).toEqual(
        bounds(all, (one, side) => one[side].allowed && one[side].shadowRefusedBy.length > 0),
      )
      for (const policy of report.policies) {
        const refuses = (one: Decided, side: 'spread' | 'burst') =>
          [...one[side].refusedBy, ...one[side].shadowRefusedBy].includes(policy.name)
        const asked = all.filter(({ spread }) => spread.policies.length > 0)
        expect(policy.requests).toBe(asked.length)
        const { low, high } = bounds(all, refuses)
        expect(policy.refused).toEqual({ low, high })
        const of = asked.length || 1
        expect(policy.share).toEqual({ low: low / of, high: high / of })
        expect(policy.clients).toEqual(
          bounds(clients, (own, side) => own.some((one) => refuses(one, side))),
        )
        const refused = all.filter((one) => refuses(one, 'spread') || refuses(one, 'burst'))
        expect(policy.firstRefusal).toBe(refused[0]?.line.time ?? null)
        const minutes = [...Map.groupBy(refused, ({ line }) => Math.floor(line.time / 60_000))]
          .map(([minute, own]) => ({ time: minute * 60_000, refused: bounds(own, refuses) }))
          .sort((a, b) => b.refused.high - a.refused.high || a.time - b.time)
        expect(policy.worstMinute).toEqual(minutes[0] ?? null)
        const slots = policy.overTime.requests.map((_, slot) => {
          const from = report.slotsFrom + slot * report.slotMs
          return asked.filter(({ line }) => line.time >= from && line.time < from + report.slotMs)
        })
        expect(slots.flat()).toHaveLength(asked.length)
        expect(policy.overTime.requests).toEqual(slots.map((own) => own.length))
        const ofSlots = slots.map((own) => bounds(own, refuses))
        expect(policy.overTime.low).toEqual(ofSlots.map(({ low }) => low))
        expect(policy.overTime.high).toEqual(ofSlots.map(({ high }) => high))
      }
      expect(report.clients).toEqual({ count: byClient.size, exact: true })
      for (const offender of report.offenders) {
        const own = byClient.get(offender.client)!
        expect(offender).toMatchObject({
          requests: own.length,
          refused: bounds(own, (one, side) => !one[side].allowed),
          from: own[0]!.line.time,
          to: own.at(-1)!.line.time,
        })
        const statuses = Map.groupBy(own, ({ line }) =>
          line.status ? `${String(line.status)[0]}xx` : 'none',
        )
        expect(offender.statuses).toEqual(
          Object.fromEntries([...statuses].map(([name, { length }]) => [name, length])),
        )
        for (const { text, requests } of offender.paths.top) {
          const { length } = own.filter(({ line }) => line.target.replace(/\?.*/, '') === text)
          expect(requests).toEqual({ low: length, high: length })
        }
      }
    }),
    { numRuns: 200 },
  )
})

test('A comparison of random decisions agrees with a second count.', () => {
  const pair = log.chain((all) =>
    fc
      .array(refusals, { minLength: all.length, maxLength: all.length })
      .map((others) =>
        all.map((one, n) => [one, decidedAs(one.line, verdictOf(others[n]!))] as const),
      ),
  )
  fc.assert(
    fc.property(pair, (both) => {
      const tally = createTally({ policies })
      const [decided, other] = [both.map(([one]) => one), both.map(([, one]) => one)]
      tally.add(decided, other)
      const against = { config: 'other', engine: 'redis' as const, notReplayed: [] }
      const { added, removed } = tally.result(contextOf({ against })).against!
      const differs = (from: 0 | 1) => (one: (typeof both)[number], side: 'spread' | 'burst') =>
        !one[from][side].allowed && one[1 - from]![side].allowed
      expect(added.requests).toEqual(bounds(both, differs(0)))
      expect(removed.requests).toEqual(bounds(both, differs(1)))
      for (const { client, requests } of added.top) {
        const own = both.filter(([one]) => clientOf(one) === client)
        expect(requests).toEqual(bounds(own, differs(0)))
      }
    }),
    { numRuns: 100 },
  )
})
