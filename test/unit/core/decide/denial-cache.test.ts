/** Cached refusals: they are the same as the store's, and the cache never refuses a request that the store would admit. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { PolicyOptions } from '../../../../src/core/config/options.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import type { Store } from '../../../../src/core/connection/store.ts'
import { decideEach } from '../../../../src/core/decide/decide.ts'
import { createDenialCache } from '../../../../src/core/decide/denial-cache.ts'
import type { LimiterParts } from '../../../../src/core/decide/question.ts'
import { createLocalStore } from '../../../../src/core/fallback/local.ts'
import { defaultFields } from '../../../../src/features/defaults.ts'
import { storeOf } from '../../../support/store-of.ts'
import { fallbackOver } from '../../../support/with-fallback.ts'

const start = Date.UTC(2026, 10, 20, 12, 0, 0, 400)
let now = start
const advance = (by: number) => {
  now += by
  vi.setSystemTime(now)
}
beforeEach(() => {
  now = start
  vi.useFakeTimers({ now, toFake: ['Date'] })
})
afterEach(() => void vi.useRealTimers())

const matchesOf = (options: Partial<PolicyOptions>[], cost = 1) =>
  parseConfig(
    {
      policies: options.map((option, index) => ({
        name: `p${index}`,
        limit: 5,
        window: '10s',
        localShare: 1,
        onStoreError: option.algorithm === 'concurrency' ? 'deny' : 'local',
        ...option,
      })),
    },
    defaultFields,
  ).policies.map((terms) => ({ terms, partitionKey: [['ip', 'a'] as [string, string]], cost }))

/** An isolate on a store with a latency of `there` ms for a call and `back` ms for its reply. */
function isolate(truth: Store, { there = 0, back = 0, denialCache = createDenialCache() } = {}) {
  let calls = 0
  const store = storeOf(async (requests) => {
    calls += 1
    advance(there)
    const reply = await truth.decide(requests, { now })
    advance(back)
    return reply
  })
  const parts: LimiterParts = {
    store: fallbackOver(store, { denialCache }).store,
    denialCache,
    nameSubject: async () => 'a',
    onStoreError: () => {},
  }
  return {
    denialCache,
    async decide(matches: ReturnType<typeof matchesOf>) {
      const before = calls
      const [outcome] = await decideEach([{ matched: { policies: matches } }], parts)
      return { ...outcome!.decision, called: calls > before }
    },
  }
}

describe('a cached refusal', () => {
  const exhaust = async (
    one: ReturnType<typeof isolate>,
    matches: ReturnType<typeof matchesOf>,
  ) => {
    let last = await one.decide(matches)
    for (let time = 0; time < 20 && last.allowed; time++) last = await one.decide(matches)
    return last
  }

  test('A refusal is cached until a unit may have come back.', async () => {
    const one = isolate(createLocalStore(), { there: 3, back: 4 })
    const matches = matchesOf([{ algorithm: 'fixed-window' }])
    const first = await exhaust(one, matches)
    expect([first.allowed, first.called]).toEqual([false, true])
    advance(1000)
    const again = await one.decide(matches)
    expect([again.called, again.retryAfterMs, again.decidedAt]).toEqual([
      false,
      first.retryAfterMs! - 1000,
      first.decidedAt! + 1000,
    ])
    advance(again.retryAfterMs! - 8) // less a round trip of 7 ms
    expect((await one.decide(matches)).called).toBe(false)
    advance(1)
    expect((await one.decide(matches)).called).toBe(true)
  })

  test('A refusal is cached for at most ten seconds, because other isolates may have refunded units.', async () => {
    const one = isolate(createLocalStore())
    const matches = matchesOf([{ algorithm: 'fixed-window', window: '1h' }])
    await exhaust(one, matches)
    advance(9_999)
    expect((await one.decide(matches)).called).toBe(false)
    advance(1)
    expect((await one.decide(matches)).called).toBe(true)
  })

  test('A refund by this isolate makes it forget refusals, including those in flight.', async () => {
    const one = isolate(createLocalStore())
    const matches = matchesOf([{ algorithm: 'fixed-window' }])
    await exhaust(one, matches)
    one.denialCache.forget(now, ['a'])
    expect((await one.decide(matches)).called).toBe(true)
    expect((await one.decide(matches)).called).toBe(true) // the call of the same millisecond may have been sent before the refund
    advance(1)
    expect((await one.decide(matches)).called).toBe(true)
    expect((await one.decide(matches)).called).toBe(false)
  })

  test('A refusal is not used after the clock is set back.', async () => {
    const one = isolate(createLocalStore())
    const matches = matchesOf([{ algorithm: 'fixed-window' }])
    await exhaust(one, matches)
    advance(-1)
    expect((await one.decide(matches)).called).toBe(true)
  })

  test('A refusal is not cached if the clock is set back while its reply is in flight.', async () => {
    const one = isolate(createLocalStore(), { back: -100 })
    const matches = matchesOf([{ algorithm: 'fixed-window', limit: 1, window: 1000 }])
    await exhaust(one, matches)
    advance(900) // the window may be over now
    const { called } = await one.decide(matches)
    expect(called).toBe(true)
  })

  test('A cached refusal has every limit that is known to refuse, with the longest wait, and no other limit.', async () => {
    const one = isolate(createLocalStore())
    const matches = matchesOf([
      { algorithm: 'fixed-window', limit: 3 },
      { algorithm: 'token-bucket', limit: 100 },
      { algorithm: 'fixed-window', limit: 3, window: '1m' },
    ])
    await exhaust(one, matches)
    advance(500)
    const { called, limits, retryAfterMs } = await one.decide(matches)
    expect([
      called,
      limits.map(({ policy, allowed, remaining }) => [policy, allowed, remaining]),
    ]).toEqual([
      false,
      [
        ['p0', false, 0],
        ['p2', false, 0],
      ],
    ])
    expect(retryAfterMs).toBe(59_500)
  })

  test('A cached refusal answers every request with the refusing limit, whatever its other keys are.', async () => {
    const one = isolate(createLocalStore())
    const [exhausted, varied] = matchesOf([
      { algorithm: 'fixed-window', limit: 3 },
      { algorithm: 'fixed-window', limit: 3, key: 'query:q' },
    ])
    await exhaust(one, [exhausted!])
    for (let n = 0; n < 100; n++) {
      const other = { ...varied!, partitionKey: [['query:q', `${n}`] as [string, string]] }
      const { called, allowed, limits } = await one.decide([other, exhausted!])
      expect([called, allowed, limits.map(({ policy }) => policy)]).toEqual([false, false, ['p0']])
    }
  })

  test('A cached refusal does not answer a request with another limit that counts refusals towards a ban.', async () => {
    const one = isolate(createLocalStore())
    const [exhausted, banning] = matchesOf([
      { algorithm: 'fixed-window', limit: 3 },
      { algorithm: 'fixed-window', limit: 3, penalty: { after: 9, within: '1m', ban: '1m' } },
    ])
    await exhaust(one, [exhausted!])
    expect((await one.decide([exhausted!])).called).toBe(false)
    expect((await one.decide([exhausted!, banning!])).called).toBe(true)
  })

  test.each<[string, Partial<PolicyOptions>, cost: number, floor?: number]>([
    ['of a cost while units remain', { algorithm: 'fixed-window', limit: 5 }, 2],
    ['of a cost that never fits', { algorithm: 'fixed-window', limit: 5 }, 6],
    ['below a floor', { algorithm: 'token-bucket', limit: 5 }, 1, 4],
    ['of slots', { algorithm: 'concurrency', limit: 2, window: '1m' }, 1],
    ['by a policy with countOnly', { algorithm: 'fixed-window', countOnly: 401 }, 1],
    [
      'by a policy with a price in the response',
      { algorithm: 'fixed-window', cost: { response: 'x-cost' } },
      1,
    ],
    [
      'that counts towards a ban',
      { algorithm: 'fixed-window', penalty: { after: 50, within: '1m', ban: '1m' } },
      1,
    ],
  ])('A refusal %s is not cached.', async (_, options, cost, floor = 0) => {
    const one = isolate(createLocalStore())
    const matches = matchesOf([options], cost).map((match) => ({ ...match, floor }))
    await exhaust(one, matches)
    expect((await one.decide(matches)).called).toBe(true)
  })

  test.each<[string, Partial<PolicyOptions>]>([
    ['a penalty', { penalty: { after: 2, within: '1m', ban: '1m' } }],
    ['countOnly', { countOnly: 401 }],
  ])(
    'A cached refusal does not answer requests under new policies with or without %s.',
    async (_, change) => {
      const old = matchesOf([{ algorithm: 'fixed-window' }])
      const changed = matchesOf([{ algorithm: 'fixed-window', ...change }])
      for (const [before, after] of [
        [old, changed],
        [changed, old],
      ] as const) {
        const one = isolate(createLocalStore())
        await exhaust(one, before)
        expect((await one.decide(after)).called).toBe(true)
      }
      const one = isolate(createLocalStore())
      await exhaust(one, changed)
      expect((await one.decide(changed)).called).toBe(true)
    },
  )

  test('A cached refusal does not answer a request with another cost, floor, limit, plan, penalty, period or key.', () => {
    const [one] = matchesOf([{}])
    const penalty = { tag: 'ban', after: 1, withinMs: 1000, banMs: 1000, maxMs: 1000 }
    const others = [
      { ...one!, cost: 2 },
      { ...one!, floor: 1 },
      { ...one!, terms: { ...one!.terms, limit: 6 } },
      { ...one!, terms: { ...one!.terms, burst: 6 } },
      { ...one!, terms: { ...one!.terms, tag: 'other' } },
      { ...one!, terms: { ...one!.terms, penalty } },
      { ...one!, partitionKey: [['ip', 'b'] as [string, string]] },
      { ...one!, partitionKey: [['ip', undefined] as [string, undefined]] },
      { ...one!, period: [1, 2, 3] as [number, number, number] },
    ]
    const cache = createDenialCache()
    cache.keep({ ...one!, subject: 's' }, refusing, start, start, start)
    expect(cache.find([one!], start)).toBeDefined()
    for (const other of others) expect(cache.find([other], start)).toBeUndefined()
  })
})

/** The state of a limit without remaining units for 5 s. */
const refusing = {
  allowed: false,
  remaining: 0,
  retryAfterMs: 5000,
  resetAfterMs: 9000,
  nextAfterMs: 5000,
}
const [limit] = matchesOf([{ algorithm: 'fixed-window' }])
const ofClient = (n: number) => ({
  ...limit!,
  subject: `s${n}`,
  partitionKey: [['ip', `${n}`] as [string, string]],
})

test('The cache keeps its maximum size, and evicts the least recently used refusals.', () => {
  const cache = createDenialCache(10_000)
  for (let n = 0; n < 1000; n++) {
    cache.keep(ofClient(n), refusing, start, start, start)
    cache.find([ofClient(0)], start)
  }
  const left = Array.from({ length: 1000 }, (_, n) => n).filter((n) =>
    cache.find([ofClient(n)], start),
  )
  expect(left.length).toBeGreaterThan(10)
  expect(left.length).toBeLessThan(30)
  expect(left).toEqual([
    0,
    ...Array.from({ length: left.length - 1 }, (_, n) => 1000 - left.length + 1 + n),
  ])
})

test('A refund makes the cache forget the refusals of its subject, including those in flight, and no others.', () => {
  const cache = createDenialCache()
  const first = ofClient(0)
  const keep = (sentAt: number) => cache.keep(first, refusing, start, sentAt, sentAt)
  keep(start)
  cache.forget(start, ['s1', 'another'])
  expect(cache.find([first], start)).toBeDefined()
  cache.forget(start + 1, ['s0'])
  expect(cache.find([first], start + 1)).toBeUndefined()
  for (const sentAt of [start, start + 1]) keep(sentAt) // sent before the refund, or in its millisecond
  expect(cache.find([first], start + 1)).toBeUndefined()
  keep(start + 2)
  expect(cache.find([first], start + 2)).toBeDefined()
  cache.forget(start + 2, ['s0'])
  cache.forget(start + 3, ['another'])
  keep(start + 3)
  expect(cache.find([first], start + 3)).toBeDefined()
  cache.forget(start + 4, ['s0'])
  for (let other = 0; other < 3000; other++) cache.forget(start + 4, [`other ${other}`])
  keep(start + 4)
  expect(cache.find([first], start + 4)).toBeUndefined() // beyond 1,000 subjects every refusal is discarded
})

test('A refund makes the cache forget refusals also if its own clock is late, as that of a request that another one wakes.', () => {
  const cache = createDenialCache()
  const [first, second] = [ofClient(0), ofClient(1)]
  cache.keep(first, refusing, start, start + 10, start + 20)
  cache.forget(start + 5, ['s0'])
  expect(cache.find([first], start + 21)).toBeUndefined()
  cache.find([second], start + 30) // asks the store
  cache.forget(start + 5, ['s1'])
  cache.keep(second, refusing, start, start + 30, start + 40)
  expect(cache.find([second], start + 41)).toBeUndefined()
  // A clock that is set back does not disable the cache.
  const back = start - 3_600_000
  cache.forget(back, ['s0'])
  cache.keep(first, refusing, back, back + 1, back + 1)
  expect(cache.find([first], back + 1)).toBeDefined()
})

test('A refusal is forgotten when a unit may come back, the limit of an operator ends, a lease of another isolate may end, or another isolate may have ended the ban.', () => {
  const cache = createDenialCache()
  cache.keep(ofClient(2), refusing, start, start, start)
  expect(cache.find([ofClient(2)], start + 4_999)).toBeDefined()
  expect(cache.find([ofClient(2)], start + 5_000)).toBeUndefined()
  const limit = ofClient(0)
  const state = { ...refusing, limit: 1, overriddenForMs: 40 }
  cache.keep(limit, state, start, start, start)
  expect(cache.find([limit], start + 39)?.states[0]).toMatchObject({ limit: 1, overriddenForMs: 1 })
  expect(cache.find([limit], start + 40)).toBeUndefined()
  const client = ofClient(1)
  const leased = { ...client, terms: { ...client.terms, lease: { max: 2, ttlMs: 30 } } }
  cache.keep(leased, refusing, start, start, start)
  expect(cache.find([leased], start + 29)).toBeDefined()
  expect(cache.find([leased], start + 30)).toBeUndefined()
  cache.keep(limit, { ...refusing, bannedForMs: 60_000 }, start, start, start)
  expect(cache.find([limit], start + 9_999)?.states[0]).toMatchObject({ bannedForMs: 50_001 })
  expect(cache.find([limit], start + 10_000)).toBeUndefined()
})
