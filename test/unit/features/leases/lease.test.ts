import { describe, expect, test } from 'vitest'
import type { Terms } from '../../../../src/core/connection/store.ts'
import { createLease, type LimitReply } from '../../../../src/features/leases/lease.ts'
import { terms } from '../../../support/leases.ts'

const bounds = { max: 10, ttlMs: 1000 }

/** A reply to a call that was sent at 1000, received at 1010, and decided at 5000 by the store's clock. */
const replyOf = (state: Partial<LimitReply['state']> = {}, change: Partial<LimitReply> = {}) => ({
  state: {
    allowed: true,
    remaining: 900,
    retryAfterMs: 0,
    resetAfterMs: 30_000,
    nextAfterMs: 30_000,
    ...state,
  },
  decidedAt: 5000,
  sentAt: 1000,
  receivedAt: 1010,
  ...change,
})

function holding(count: number, reply = replyOf(), change: Partial<Terms> = {}) {
  const lease = createLease({ terms: { ...terms, ...change } }, bounds)
  lease.receive(count, reply)
  return lease
}

describe('held units', () => {
  test('Held units can be spent up to their number, until the lease ends.', () => {
    const lease = holding(3)
    expect([3, 4].map((count) => lease.has(count, 1010))).toEqual([true, false])
    lease.take(2)
    expect([1, 2].map((count) => lease.has(count, 1010))).toEqual([true, false])
    expect([1999, 2000].map((now) => lease.has(1, now))).toEqual([true, false])
  })

  test('Held units cannot be spent after their window, counted from when the call was sent.', () => {
    const lease = holding(3, replyOf({ resetAfterMs: 500 }))
    expect([1499, 1500].map((now) => lease.has(1, now))).toEqual([true, false])
  })

  test('Held units of a sliding window cannot be spent in the next window.', () => {
    const lease = holding(3, replyOf({ resetAfterMs: 60_500 }), { algorithm: 'sliding-window' })
    expect([1499, 1500].map((now) => lease.has(1, now))).toEqual([true, false])
  })

  test('Held units of a full bucket can be spent, but are not refunded.', () => {
    const bucket = () => holding(3, replyOf({ resetAfterMs: 500 }), { algorithm: 'token-bucket' })
    expect(bucket().has(3, 1500)).toBe(true)
    expect(bucket().takeForRefund(1499)).toMatchObject({ count: 3, decidedAt: 5000 })
    expect(bucket().takeForRefund(1500)).toBeUndefined()
  })

  test('Held units cannot be spent if the clock is set back to before their call.', () => {
    expect([1000, 999].map((now) => holding(1).has(1, now))).toEqual([true, false])
  })

  test('Held units are refunded once.', () => {
    const lease = holding(3)
    expect(lease.takeForRefund(1010)).toMatchObject({ count: 3, decidedAt: 5000 })
    expect(lease.takeForRefund(1010)).toBeUndefined()
  })

  test('Held units of two calls share the earlier deadline.', () => {
    const lease = holding(3)
    lease.receive(2, replyOf({}, { sentAt: 1500, receivedAt: 1510, decidedAt: 5500 }))
    expect([1999, 2000].map((now) => lease.has(5, now))).toEqual([true, false])
    expect(lease.takeForRefund(1999)).toMatchObject({ count: 5, decidedAt: 5000 })
  })

  test('Units of an earlier window neither join nor shorten a lease of the next window.', () => {
    const lease = holding(3, replyOf({ resetAfterMs: 500 }))
    const old = lease.take(1)
    lease.receive(2, replyOf({}, { sentAt: 1500, receivedAt: 1510 }))
    lease.hold(old, 1510)
    expect([2, 3].map((count) => lease.has(count, 1510))).toEqual([true, false])
    expect([2499, 2500].map((now) => lease.has(2, now))).toEqual([true, false])
  })

  test('Held units beyond the maximum are dropped, and all units are dropped when the lease is forgotten.', () => {
    const lease = holding(8)
    lease.trim(5)
    expect([5, 6].map((count) => lease.has(count, 1010))).toEqual([true, false])
    lease.forget()
    lease.receive(3, replyOf())
    expect(lease.has(1, 1010)).toBe(false)
  })
})

describe('the size of a lease', () => {
  const unitsFor = (demand: number, reply = replyOf(), inFlight = 0) => {
    const lease = holding(0, reply)
    lease.addDemand(demand, 1010)
    return lease.unitsToTake(1, inFlight, 1010)
  }

  test('A call takes half of the demand, at most the maximum, less its own cost and the units in flight.', () => {
    expect([0, 2, 9, 100].map((demand) => unitsFor(demand))).toEqual([0, 0, 4, 9])
    expect(unitsFor(100, replyOf(), 6)).toBe(3)
  })

  test('A call takes at most a sixteenth of the remaining quota.', () => {
    expect([15, 32, 100].map((remaining) => unitsFor(100, replyOf({ remaining })))).toEqual([
      0, 1, 5,
    ])
  })

  test('A call takes no units in advance before the first reply.', () => {
    const lease = createLease({ terms }, bounds)
    lease.addDemand(100, 1010)
    expect(lease.unitsToTake(1, 0, 1010)).toBe(0)
  })
})

test('The state of a lease counts held units as remaining, and its waits shrink with time.', () => {
  const lease = holding(3)
  lease.take(1)
  expect(lease.status(1110)).toEqual({
    decidedAt: 5100,
    state: {
      allowed: true,
      remaining: 902,
      retryAfterMs: 0,
      resetAfterMs: 29_900,
      nextAfterMs: 29_900,
    },
  })
  expect(lease.status(40_000).state).toMatchObject({ remaining: 1000, resetAfterMs: 0 })
})

test('A reply with an earlier decision does not replace a later one.', () => {
  const lease = holding(0)
  lease.receive(0, replyOf({ remaining: 950 }, { decidedAt: 4999 }))
  expect(lease.status(1010).state.remaining).toBe(900)
})

test('The state of a lease has the limit of an operator, its rest, and its floor.', () => {
  const override = { share: 0.5, scalesBurst: true }
  const lease = createLease({ terms, floor: terms.limit / 2, override }, bounds)
  const inForce = { limit: 5000, overriddenForMs: 9000, remaining: 2400, reserved: 2500 }
  lease.receive(3, replyOf(inForce))
  expect(lease.status(1510).state).toMatchObject({
    ...inForce,
    overriddenForMs: 8500,
    remaining: 2403,
  })
  expect(lease.status(1010 + 30_000).state).toMatchObject({ remaining: 2500, reserved: 2500 })
})
