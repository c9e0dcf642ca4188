/** Calls that requests make or wait for, and requests that no lease answers. */
import { describe, expect, test } from 'vitest'
import type {
  Limit,
  StoreOptions,
  StoreReply,
  StoreRequest,
} from '../../../../src/core/connection/store.ts'
import { settled, World } from '../../../support/isolates.ts'
import { busyOn, policyOf, take } from '../../../support/leases.ts'
import { useServer } from '../../../support/server.ts'
import { newSubject } from '../../../support/subjects.ts'

const server = useServer()
const busy = busyOn(server)

describe('a request with another limit', () => {
  const big = policyOf({ limit: 100_000, windowMs: 3_600_000 })
  const small = policyOf({ tag: 'small', limit: 1, windowMs: 3_600_000, lease: undefined })

  test('A request with another limit makes a call for that limit only, and returns its leased unit if that limit refuses.', async () => {
    const { world, row, held } = await busy(big, 5)
    const other: Limit = { subject: newSubject(), terms: small, cost: 1 }
    const both = async () => {
      const pending = world.ask(0, [take({ ...row }, { ...other })])
      await settled()
      expect(world.calls[0]!.requests).toEqual([take(other)])
      await world.drain()
      return (await pending) as StoreReply
    }
    const admitted = (await both()).states[0]!.map(({ allowed }) => allowed)
    expect([admitted, await held()]).toEqual([[true, true], 4])
    const [leased, unleased] = (await both()).states[0]!
    expect([leased!.allowed, unleased!.allowed, await held()]).toEqual([true, false, 4])
    expect(leased!.remaining).toBe(big.limit - world.units(({ row }) => row.terms === big))
  })

  test('A request with another limit does not wait for a call in flight, because it makes a call anyway.', async () => {
    const { world, row } = await busy(big, 0)
    const first = world.ask(0, [take({ ...row })])
    await settled()
    const other: Limit = { subject: newSubject(), terms: small, cost: 1 }
    const both = world.ask(0, [take({ ...row }, other)])
    await settled()
    expect(world.calls).toHaveLength(2)
    await world.drain()
    await Promise.all([first, both])
  })
})

describe('a call in flight that brings enough units', () => {
  const big = policyOf({ limit: 100_000, windowMs: 3_600_000 })
  /** Concurrent requests of an isolate that holds no units. */
  async function crowd(count: number) {
    const { world, row } = await busy(big, 0)
    const before = world.sent
    const answers = Array.from({ length: count }, () => world.ask(0, [take({ ...row })]))
    await settled()
    return { world, row, answers, sent: () => world.sent - before }
  }

  test('Requests wait for a call in flight, and make no calls of their own.', async () => {
    const { world, answers, sent } = await crowd(64)
    expect(sent()).toBe(7)
    await world.drain()
    expect(sent()).toBe(7)
    const replies = (await Promise.all(answers)) as StoreReply[]
    const left = replies.map(({ states }) => states[0]![0]!.remaining)
    expect(new Set(replies.map(({ states }) => states[0]![0]!.allowed))).toEqual(new Set([true]))
    expect(Math.max(...left)).toBeGreaterThan(0)
  })

  test('Waiting requests make their own calls after the call in flight fails.', async () => {
    const { world, answers, sent } = await crowd(10)
    expect(sent()).toBe(1)
    world.calls[0]!.fail()
    await settled()
    expect(sent()).toBe(10)
    await world.drain()
    const replies = await Promise.all(answers)
    expect(replies[0]).toBe('timeout')
    expect(replies.slice(1).every((reply) => typeof reply !== 'string')).toBe(true)
  })

  test('A request waits for at most half of its deadline.', async () => {
    const { world, row, answers, sent } = await crowd(1)
    const late = world.isolates[0]!.decide([take({ ...row })], { deadlineMs: 2_000 })
    await settled()
    expect(sent()).toBe(1)
    await expect.poll(sent).toBe(2)
    await world.drain()
    await late
    await Promise.all(answers)
  })

  test('Units of requests that stop waiting are held, up to max.', async () => {
    const { world, row, answers, sent } = await crowd(2)
    const impatient = Array.from({ length: 18 }, () =>
      world.isolates[0]!.decide([take({ ...row })], { deadlineMs: 20 }),
    )
    await expect.poll(sent).toBe(19)
    await world.drain()
    await Promise.all([...answers, ...impatient])
    world.now += 20_000
    void world.ask(0, [take({ ...row })])
    await settled()
    expect(world.calls[0]!.requests[0]).toMatchObject({ mode: 'refund', limits: [{ cost: 10 }] })
    await world.drain()
  })
})

describe('requests without a lease', () => {
  const big = policyOf({ limit: 100_000, windowMs: 3_600_000 })
  const idempotency = { key: 'k', fingerprint: 'f', forMs: 1000 }

  test.each<[what: string, Exclude<StoreRequest['mode'], 'override'>, cost: number, StoreOptions]>([
    ['A peek', 'peek', 1, {}],
    ['A request with the cost 0', 'take', 0, {}],
    ['A refund', 'refund', 1, {}],
    ['A call with an idempotency key', 'take', 1, { idempotency }],
    ['A request with a given time', 'take', 1, { now: 1_789_000_000_000 }],
  ])('%s goes to the store unchanged.', async (_, mode, cost, options) => {
    const { world, row } = await busy(big, 5)
    const requests: StoreRequest[] = [{ mode, limits: [{ ...row, cost }] }]
    const pending = world.isolates[0]!.decide(requests, options)
    await settled()
    expect(world.calls.map(({ requests }) => requests)).toEqual([requests])
    await world.drain()
    await pending
  })

  test('Held units are evicted when there are too many quotas.', async () => {
    const world = new World(server, [0], { maxBytes: 10_000 })
    const row: Limit = { subject: newSubject(), terms: big, cost: 1 }
    for (let times = 0; times < 100; times++) await world.alone(0, [take({ ...row })])
    const before = world.sent
    await world.alone(0, [take({ ...row })])
    expect(world.sent).toBe(before)
    for (let times = 0; times < 50; times++) {
      await world.alone(0, [take({ ...row, subject: newSubject() })])
    }
    await world.alone(0, [take({ ...row })])
    expect(world.sent).toBe(before + 51)
  })
})
