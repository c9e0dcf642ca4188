import { describe, expect, test } from 'vitest'
import type {
  Limit,
  StoreReply,
  StoreRequest,
  StoreState,
} from '../../../../src/core/connection/store.ts'
import { begin, callFor, conclude, type Lent } from '../../../../src/features/leases/call.ts'
import {
  type LeasedLimits,
  reserve,
  unitsInFlight,
} from '../../../../src/features/leases/in-flight.ts'
import { createLease } from '../../../../src/features/leases/lease.ts'
import { terms } from '../../../support/leases.ts'

const NOW = 1000
const limitOf = (subject: string): Limit => ({
  subject,
  terms,
  cost: 1,
})
const stateOf = (change: Partial<StoreState> = {}): StoreState => ({
  allowed: true,
  remaining: 900,
  retryAfterMs: 0,
  resetAfterMs: 30_000,
  nextAfterMs: 30_000,
  ...change,
})
const take = (...limits: Limit[]): StoreRequest => ({ mode: 'take', limits })
const replyOf = (...states: StoreState[][]): StoreReply => ({ decidedAt: 5000, states })

/** A lease on each limit in high demand, with held units. */
function leased(held: number, ...limits: Limit[]): LeasedLimits {
  return new Map(
    limits.map((limit) => {
      const lease = createLease(limit, { max: 10, ttlMs: 1000 })
      lease.addDemand(20, NOW)
      const sentAt = NOW
      lease.receive(held, { state: stateOf(), decidedAt: 4000, sentAt, receivedAt: NOW })
      return [limit, { lease, calls: new Set() }]
    }),
  )
}

const none: Lent = new Map()
const times = { sentAt: NOW, receivedAt: NOW }

function lentOf(quotas: LeasedLimits, limit: Limit): Lent {
  return new Map([[limit, { ...quotas.get(limit)!.lease.take(1), spentAt: 4000 }]])
}

describe('the requests of a call', () => {
  test('A call first refunds held units, and takes units in advance after the request itself.', () => {
    const [a, b] = [limitOf('a'), limitOf('b')]
    expect(callFor([take(a, b)], leased(3, a), none, NOW)).toEqual([
      {
        request: { mode: 'refund', limits: [{ ...a, cost: 3 }], decidedAt: 4000 },
        refunded: { limit: a, count: 3 },
      },
      { request: take(a, b) },
      { request: { mode: 'follow', limits: [{ ...a, cost: 9 }] }, taken: { limit: a, count: 9 } },
    ])
  })

  test('A call leaves out lent limits, and requests with lent limits only.', () => {
    const [a, b, c] = [limitOf('a'), limitOf('b'), limitOf('c')]
    const lent = lentOf(leased(3, a), a)
    const sent = callFor([take(a), { mode: 'follow', limits: [a, b] }], new Map(), lent, NOW)
    expect(sent).toEqual([{ request: take(b) }])
    const follow: StoreRequest = { mode: 'follow', limits: [c] }
    expect(callFor([take(a, b), follow], new Map(), lent, NOW)).toEqual([
      { request: take(b) },
      { request: follow },
    ])
  })

  test('A call has at most 128 requests.', () => {
    const limits = Array.from({ length: 100 }, (_, n) => limitOf(`${n}`))
    expect(callFor([take(...limits)], leased(1, ...limits), none, NOW)).toHaveLength(127)
  })
})

describe('the reply of a call', () => {
  test('Units taken in advance are added to the lease, and count as remaining.', () => {
    const a = limitOf('a')
    const quotas = leased(0, a)
    const sent = callFor([take(a)], quotas, none, NOW)
    const reply = replyOf([stateOf({ remaining: 899 })], [stateOf({ remaining: 890 })])
    const { states } = conclude([take(a)], sent, reply, quotas, none, times)
    expect(states).toEqual([[stateOf({ remaining: 899 })]])
    expect([9, 10].map((count) => quotas.get(a)!.lease.has(count, NOW))).toEqual([true, false])
  })

  test('A call adds no units to the lease if another limit refuses the request.', () => {
    const [a, b] = [limitOf('a'), limitOf('b')]
    const quotas = leased(0, a)
    const sent = callFor([take(a, b)], quotas, none, NOW)
    const reply = replyOf([stateOf(), stateOf({ allowed: false })], [stateOf()])
    conclude([take(a, b)], sent, reply, quotas, none, times)
    expect(quotas.get(a)!.lease.has(1, NOW)).toBe(false)
  })

  test.each([
    ['spent if the request is admitted', true, 2],
    ['held again if the request is refused', false, 3],
  ])('Lent units are %s.', (_, allowed, held) => {
    const [a, b] = [limitOf('a'), limitOf('b')]
    const quotas = leased(3, a)
    const lent = lentOf(quotas, a)
    const sent = callFor([take(a, b)], new Map(), lent, NOW)
    const { states } = conclude(
      [take(a, b)],
      sent,
      replyOf([stateOf({ allowed })]),
      quotas,
      lent,
      times,
    )
    expect(states[0]!.map((state) => state.allowed)).toEqual([true, allowed])
    const { lease } = quotas.get(a)!
    expect([held, held + 1].map((count) => lease.has(count, NOW))).toEqual([true, false])
  })
})

describe('a call in flight', () => {
  function inFlight() {
    const a = limitOf('a')
    const quotas = leased(2, a)
    const call = begin(callFor([take(a)], quotas, none, NOW), quotas, none, NOW + 100)
    return { a, quotas, quota: quotas.get(a)!, call }
  }

  test('A call in flight carries the units that it takes and refunds, until its deadline.', () => {
    const { quota } = inFlight()
    expect([NOW + 99, NOW + 100].map((now) => unitsInFlight(quota, now))).toEqual([11, 0])
  })

  test('Each unit that a call takes in advance can be reserved once.', () => {
    const { quotas, call } = inFlight()
    const reserved = Array.from({ length: 10 }, () => reserve(quotas, NOW))
    expect(reserved).toEqual([...Array(9).fill(call), undefined])
  })

  test('No request waits for a call after its deadline.', () => {
    const { quotas } = inFlight()
    expect(reserve(quotas, NOW + 100)).toBeUndefined()
  })

  test('A call that ends answers the waiting requests in order, as long as the lease has units.', async () => {
    const { a, quotas, quota, call } = inFlight()
    const waiting = Array.from({ length: 3 }, () =>
      call.waiting.join({ requests: [take(a)], quotas }, 1000),
    )
    const reply = { state: stateOf(), decidedAt: 5000, sentAt: NOW, receivedAt: NOW }
    quota.lease.receive(2, reply)
    call.end(NOW)
    const answers = await Promise.all(waiting.map(({ answered }) => answered))
    expect(answers.map((answer) => answer?.states[0]?.[0]?.remaining)).toEqual([
      901,
      900,
      undefined,
    ])
    expect(unitsInFlight(quota, NOW)).toBe(0)
  })
})
