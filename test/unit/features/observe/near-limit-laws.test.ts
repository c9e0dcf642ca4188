/** Laws of near-limit notices over random quotas, clocks and states. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Calendar } from '../../../../src/core/base/calendar.ts'
import type { LimitState } from '../../../../src/core/base/decision.ts'
import {
  algorithms,
  type QuotaTerms,
  type State,
} from '../../../../src/core/connection/algorithms/index.ts'
import { createNearLimit } from '../../../../src/features/observe/near-limit.ts'
import { isLong } from '../../../support/long.ts'

type Name = keyof typeof algorithms

/** The marks of an isolate have room for 9,000 clients. */
const CLIENTS = isLong ? 30_000 : 12_000

let ids: string[]
beforeEach(() => {
  ids = []
  vi.stubGlobal('fetch', async (_: string, { headers }: { headers: Record<string, string> }) => {
    ids.push(headers['webhook-id']!)
    return new Response()
  })
})
afterEach(() => void vi.unstubAllGlobals())

const env = { SLUICE_WEBHOOK_SECRET: 'a secret of the tests' }

/** A new isolate, whose clock differs from that of the store. Returns the ids of the notices for a decision. */
function isolateWith(skewMs: number, thresholds = [80, 90, 100]) {
  let now = 0
  const nearLimit = createNearLimit({
    url: 'https://hooks.example.com/',
    thresholds,
    log: () => {},
    clock: () => now + skewMs,
  })
  return async (limit: LimitState, decidedAt: number, isFixedWindow: boolean) => {
    now = decidedAt
    ids = []
    const background: Promise<unknown>[] = []
    nearLimit.decided(
      {
        time: now + skewMs,
        decidedBy: 'store',
        subject: 'client',
        remainingShare: limit.remaining / limit.limit,
      },
      limit,
      { env, waitUntil: (one) => void background.push(one), decidedAt, isFixedWindow },
    )
    await Promise.all(background)
    return ids
  }
}

/** The limit state after a charge, and the new state in the store. */
function charge(name: Name, terms: QuotaTerms, now: number, cost: number, before?: State) {
  const { state = before, ...outcome } = algorithms[name](now, terms, cost, before)
  const { limit, windowMs } = terms
  const limitState: LimitState = { policy: 'p', mode: 'enforce', limit, windowMs, cost, ...outcome }
  return { limitState, state }
}

const time = fc.integer({ min: 1_700_000_000_000, max: 1_900_000_000_000 })
const skew = fc.integer({ min: -86_400_000, max: 86_400_000 })
const windowMs = fc.oneof(
  fc.integer({ min: 1, max: 5_000 }),
  fc.constantFrom(1_000, 60_000, 3_600_000, 86_400_000),
  fc.integer({ min: 1_000, max: 90 * 86_400_000 }),
)
const fraction = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
const limit = fc.integer({ min: 1, max: 1_000 })

test('Two isolates give the notices of one fixed window the same ids, and those of the next window others.', async () => {
  const zones = ['UTC', 'Europe/Berlin', 'America/St_Johns', 'Pacific/Apia']
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        time,
        skews: fc.tuple(skew, skew),
        windowMs,
        limit,
        kind: fc.constantFrom('first-request', 'clock', 'day', 'week', 'month'),
        zone: fc.constantFrom(...zones),
        at: fc.tuple(fraction, fraction),
      }),
      async ({ time, skews, windowMs, limit, kind, zone, at }) => {
        const isCalendar = kind === 'day' || kind === 'week' || kind === 'month'
        const align = kind === 'clock' ? kind : 'first-request'
        const period = isCalendar ? new Calendar(kind, zone).periodAt(time) : undefined
        const lengthMs = period ? period[1] - period[0] : windowMs
        const terms: QuotaTerms = { limit, windowMs: lengthMs, burst: limit, align, period }
        const opening = charge('fixed-window', terms, time, limit)
        const restMs = opening.limitState.resetAfterMs
        const [one, other] = await Promise.all(
          at.map(async (fraction, index) => {
            const now = time + Math.floor(fraction * restMs)
            return { now, ...charge('fixed-window', terms, now, index, opening.state) }
          }),
        )
        const first = isolateWith(skews[0])
        const known = [...(await first(one!.limitState, one!.now, true))].sort()
        expect(known).toHaveLength(3)
        expect(
          [...(await isolateWith(skews[1])(other!.limitState, other!.now, true))].sort(),
        ).toEqual(known)
        expect(await first(other!.limitState, other!.now, true)).toEqual([])

        const later = time + restMs
        const next = charge('fixed-window', terms, later, limit, opening.state)
        const renewed = await first(next.limitState, later, true)
        expect(renewed).toHaveLength(3)
        expect(known.filter((id) => renewed.includes(id))).toEqual([])
      },
    ),
    { numRuns: isLong ? 300 : 60 },
  )
})

test('Two isolates give the notices of other algorithms the same ids if the store decides in the same multiple of the window.', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        name: fc.constantFrom<Name>('sliding-window', 'sliding-log', 'token-bucket'),
        time,
        skews: fc.tuple(skew, skew),
        windowMs,
        limit: fc.integer({ min: 1, max: 100 }),
        at: fc.tuple(fraction, fraction),
      }),
      async ({ name, time, skews, windowMs, limit, at }) => {
        const start = time - (time % windowMs)
        const terms: QuotaTerms = { limit, windowMs, burst: limit, align: 'first-request' }
        const times = at.map((fraction) => start + Math.floor(fraction * windowMs))
        const [one, other] = times.map((now) => charge(name, terms, now, limit).limitState)
        const first = isolateWith(skews[0])
        const known = [...(await first(one!, times[0]!, false))].sort()
        expect(known).toHaveLength(3)
        const others = await isolateWith(skews[1])(other!, times[1]!, false)
        expect([...others].sort()).toEqual(known)
        const later = start + windowMs
        const renewed = await first(charge(name, terms, later, limit).limitState, later, false)
        expect(known.filter((id) => renewed.includes(id))).toEqual([])
        expect(renewed).toHaveLength(3)
      },
    ),
    { numRuns: isLong ? 200 : 50 },
  )
})

test('Units of a lease that is lent to a call, whose window seems to end a little early, give the same ids.', async () => {
  const terms: QuotaTerms = { limit: 10, windowMs: 60_000, burst: 10, align: 'clock' }
  const now = 1_789_000_000_123
  const { limitState } = charge('fixed-window', terms, now, 9)
  const known = [...(await isolateWith(0)(limitState, now, true))].sort()
  const ids = await isolateWith(0)(limitState, now - 320, true)
  expect([...ids].sort()).toEqual(known)
})

test('The notices of a limit are those of exact arithmetic, for each number of used units.', async () => {
  for (const limit of [1, 2, 3, 7, 10, 25, 29, 100, ...(isLong ? [333, 1000] : [])]) {
    const terms: QuotaTerms = { limit, windowMs: 60_000, burst: limit, align: 'clock' }
    for (let used = 1; used <= limit; used += 1) {
      const { limitState } = charge('fixed-window', terms, 1_789_000_000_000, used)
      const thresholds = [1, 10, 20, 29, 45, 58, 80, 90, 99, 100]
      const ids = await isolateWith(0, thresholds)(limitState, 1_789_000_000_000, true)
      const reached = thresholds.filter((threshold) => used * 100 >= threshold * limit)
      expect([limit, used, ids.length]).toEqual([limit, used, reached.length])
    }
  }
})

test('Many clients near their limit take at most 8 MiB, while the receiver hangs.', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const heapMiB = () => {
    for (let n = 0; n < 4; n += 1) collect()
    return process.memoryUsage().heapUsed / 1024 / 1024
  }
  vi.stubGlobal('fetch', () => new Promise(() => {}))
  const nearLimit = createNearLimit({
    url: 'https://hooks.example.com/',
    thresholds: [80, 90, 100],
    log: () => {},
  })
  const terms: QuotaTerms = { limit: 10, windowMs: 60_000, burst: 10, align: 'clock' }
  const { limitState } = charge('fixed-window', terms, 1_789_000_000_000, 10)
  let running = 0
  const waitUntil = (promise: Promise<unknown>) => {
    running += 1
    void promise.then(() => (running -= 1))
  }
  const before = heapMiB()
  for (let client = 0; client < CLIENTS; client += 1) {
    nearLimit.decided(
      { time: 0, decidedBy: 'store', subject: `client-${client}`, remainingShare: 0 },
      limitState,
      { env, waitUntil, decidedAt: 1_789_000_000_000, isFixedWindow: true },
    )
    if (client % 1_000 === 0) await new Promise((resolve) => setTimeout(resolve))
  }
  await expect.poll(() => running).toBe(100)
  expect(nearLimit.dropped()).toBe(3 * CLIENTS - 100)
  expect(heapMiB() - before).toBeLessThan(8)
})
