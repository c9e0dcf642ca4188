/** Expectations of a configuration, checked on the requests of a log. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createExpectationCounter } from '../../../cli/replay/expect/expectations.ts'
import { MostWithin } from '../../../cli/replay/expect/most.ts'
import { expectationSections } from '../../../cli/replay/report/expectation-content.ts'
import { gate } from '../../../cli/replay/report/gate.ts'
import { createTally } from '../../../cli/replay/report/tally.ts'
import type { ConfigOptions, ExpectOptions } from '../../../src/core/config/options.ts'
import { lineAt, replay, someFacts } from '../../support/replay.ts'
import { contextOf } from '../../support/replay-report.ts'

const login: ExpectOptions = { request: { method: 'POST', path: '/login' }, atMost: 2, in: '1m' }
const config = (expect: ConfigOptions['expect'], limit = 3): ConfigOptions => ({
  policies: [{ name: 'login', limit, window: '1m', algorithm: 'sliding-log' }],
  expect,
})

async function reportOf(
  options: ConfigOptions,
  lines: ReturnType<typeof lineAt>[],
  wholeSeconds = false,
) {
  const counter = createExpectationCounter(options, { facts: someFacts, wholeSeconds })
  await counter.add(await replay(options, lines, { wholeSeconds }))
  return counter.result()
}

const attempt = { method: 'POST', target: '/login' }
const attempts = (...times: number[]) => times.map((ms) => lineAt(ms, attempt))

describe('An expectation on a log', () => {
  test('It counts the admitted requests of each client that it is about.', async () => {
    const lines = [
      ...attempts(0, 1, 2, 3, 4),
      lineAt(5, { ...attempt, ip: '203.0.113.8' }),
      lineAt(6, { ...attempt, method: 'GET', ip: '203.0.113.9' }),
      lineAt(7, { ...attempt, target: '//LOGIN/', ip: '203.0.113.8' }),
    ]
    const [one] = await reportOf(config(login), lines)
    expect(one).toEqual({
      title: 'POST /login by ip',
      ...{ atMost: 2, inMs: 60_000, client: '203.0.113.7', from: lines[0]!.time },
      most: { low: 3, high: 3 },
      notReplayed: [],
    })
  })

  test('It has bounds if the stamps are whole seconds and the two replays differ.', async () => {
    const half = { name: 'a', limit: 1, window: '500ms', algorithm: 'fixed-window' } as const
    const lines = attempts(0, 0, 0, 0)
    const options = { policies: [{ ...half, align: 'clock' as const }], expect: login }
    const [one] = await reportOf(options, lines, true)
    expect(one!.most).toEqual({ low: 1, high: 2 })
  })

  test('It is not replayed if the log lacks what it reads.', async () => {
    const [one] = await reportOf(config({ ...login, per: 'cookie:c' }), attempts(0))
    expect(one!.most).toEqual({ low: 0, high: 0 })
    expect(one!.notReplayed).toEqual([expect.stringMatching(/cookie/)])
  })

  test('An invalid one is an error.', async () => {
    await expect(reportOf(config({ ...login, atMost: -1 }), [])).rejects.toThrow(/expect\.atMost/)
  })
})

test('The report says which expectation holds and which client exceeds one, and the gate fails.', async () => {
  const other = { ...login, request: { path: '/none' } }
  const list = [login, { ...login, atMost: 3 }, other, { ...login, per: 'cookie:c' as const }]
  const expectations = await reportOf(config(list), attempts(0, 1, 2))
  const report = createTally({ policies: [] }).result(contextOf({ expectations }))
  const items = expectationSections(report).flatMap(({ blocks }) =>
    blocks.flatMap((block) => (block.kind === 'list' ? block.items : [])),
  )
  expect(items[0]).toBe(
    'POST /login by ip: at most 2 in 1 min. Exceeded: 3 requests of 203.0.113.7 pass, from 2026-01-05 12:00:00 UTC.',
  )
  expect(items[1]).toContain('Holds: 3 requests of 203.0.113.7 pass')
  expect(items[2]).toContain('The log has no such request that is admitted.')
  expect(items[3]).toContain('Not replayed: ')
  expect(gate(report, {})).toEqual([items[0]])
  expect(expectationSections({ ...report, expectations: [] })).toEqual([])
})

test('The most requests within any interval are those of a count of each interval.', () => {
  const sent = fc.array(fc.tuple(fc.constantFrom('a', 'b'), fc.integer({ min: 0, max: 30 })))
  fc.assert(
    fc.property(sent, fc.integer({ min: 1, max: 60 }), (pauses, inMs) => {
      let now = 0
      const requests = pauses.map(([client, pause]) => {
        now += pause
        return { client, now }
      })
      const counter = new MostWithin(inMs)
      for (const { client, now } of requests) counter.add(client, now)
      const counts = requests.map(
        (first) =>
          requests.filter(
            ({ client, now }) =>
              client === first.client && now >= first.now && now < first.now + inMs,
          ).length,
      )
      expect(counter.most.requests).toBe(Math.max(0, ...counts))
    }),
  )
})

test('Clients without a recent request are forgotten, and others are not.', () => {
  const counter = new MostWithin(1_000)
  for (let n = 0; n < 100_000; n += 1) counter.add(`old ${n}`, 0)
  counter.add('new', 1_500)
  counter.add('newer', 1_600)
  counter.add('new', 1_700)
  expect(counter.most).toEqual({ requests: 2, client: 'new', from: 1_500 })
})
