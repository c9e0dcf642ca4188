/** Leases of requests with several limits, and of many concurrent calls. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Limit, StoreReply, StoreRequest } from '../../../src/store/store.ts'
import { Model, type ModelRequest } from '../../model/model.ts'
import { settled, World } from '../../support/isolates.ts'
import { property } from '../../support/law.ts'
import { useServer } from '../../support/server.ts'
import { newSubject } from '../../support/subjects.ts'

const server = useServer()

const leased: Limit['terms'] = {
  tag: 't',
  algorithm: 'fixed-window',
  limit: 100_000,
  windowMs: 60_000,
  burst: 100_000,
  align: 'clock',
  localShare: 1,
  lease: { max: 10, ttlMs: 10_000 },
}
const small: Limit['terms'] = {
  ...leased,
  tag: 'small',
  limit: 1,
  windowMs: 3_600_000,
  lease: undefined,
}
const take = (...limits: Limit[]): StoreRequest => ({ mode: 'take', limits: limits })

/** The beginning of a minute. */
const start = 1_789_000_020_000

/** An isolate with enough recent requests for one key to take leases. */
async function busy(policy = leased, now = start) {
  const world = new World(server, [0])
  world.now = now
  const row: Limit = { subject: newSubject(), terms: policy, cost: 1 }
  const ask = (cost = 1) => world.alone(0, [take({ ...row, cost })])
  const held = async () => {
    const peeked = await world.evaluate([{ mode: 'peek', limits: [{ ...row, cost: 0 }] }])
    const counted = row.terms.burst - peeked.states[0]![0]!.remaining
    return counted - world.units((passed) => passed.row.terms === policy)
  }
  /** Makes requests until this many units are held. */
  async function hold(count: number) {
    for (let tries = 0; tries < 50 && (await held()) !== count; tries++) await ask()
    expect(await held()).toBe(count)
  }
  for (let times = 0; times < 30; times++) await ask()
  return { world, row, ask, hold, held }
}

describe('a request with another limit', () => {
  const other = (): Limit => ({ subject: newSubject(), terms: small, cost: 1 })

  test('A refusal by a limit without a lease is not marked as leased, even while units of another limit are held.', async () => {
    const { world, row, hold, held } = await busy()
    await hold(5)
    const unleased = other()
    const both = () => world.alone(0, [take({ ...row }, { ...unleased })])
    expect((await both()).states[0]!.map(({ allowed }) => allowed)).toEqual([true, true])
    const refused = await both()
    expect(refused.states[0]!.map(({ allowed }) => allowed)).toEqual([true, false])
    expect(await held()).toBe(4)
    expect(refused.leased).toBeUndefined()
  })

  test('A unit that was lent just before the end of a window is not refunded to the next window.', async () => {
    const { world, row, hold } = await busy(leased, start + 55_000)
    await hold(5)
    world.now = start + 60_000 - 10
    const both = world.ask(0, [take({ ...row }, other())])
    await settled()
    world.now += 20
    await world.drain()
    const reply = (await both) as StoreReply
    const decidedAt = reply.states[0]![0]!.decidedAt ?? reply.decidedAt
    const next = { ...row, cost: 3 }
    await world.evaluate([take(next)])
    const refund: StoreRequest = { mode: 'refund', limits: [row], decidedAt }
    const { states } = await world.evaluate([refund])
    expect(states[0]![0]!.remaining).toBe(leased.limit - 3)
  })

  test('Calls of cancelled requests do not reduce later leases.', async () => {
    const { world, row, ask, hold } = await busy()
    await hold(9)
    for (let times = 0; times < 9; times++) void world.ask(0, [take({ ...row }, other())])
    await settled()
    world.calls.splice(0) // these calls never end
    world.now += 700_000
    for (let times = 0; times < 30; times++) await ask()
    const before = world.sent
    for (let times = 0; times < 20; times++) await ask()
    expect(world.sent - before).toBe(2)
  })
})

test('Leased units of a bucket, including a refund in flight, never exceed max.', async () => {
  const bucket: Limit['terms'] = {
    ...leased,
    algorithm: 'token-bucket',
    limit: 1000,
    windowMs: 3_600_000,
    lease: { max: 10, ttlMs: 1000 },
  }
  const { world, row, hold } = await busy(bucket)
  await hold(9)
  world.now += 5000 // the lease has ended, and there is no recent demand
  const pending = Array.from({ length: 12 }, () => world.ask(0, [take({ ...row })]))
  await settled()
  const [first] = world.calls
  expect(first!.requests[0]).toMatchObject({ mode: 'refund', limits: [{ cost: 9 }] })
  // While that call is in flight, other calls take more units.
  const later = world.calls.slice(1).flatMap(({ requests }) => requests)
  const more = later.filter(({ mode }) => mode === 'follow').map(({ limits }) => limits[0]!.cost)
  expect(more.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(1)
  await world.drain()
  await Promise.all(pending)
})

test('A returned unit of an earlier window does not shorten a lease of the next window.', async () => {
  const { world, row, ask, hold } = await busy(leased, start + 55_000)
  const other: Limit = { subject: newSubject(), terms: small, cost: 1 }
  await world.evaluate([take({ ...other })]) // its only unit
  await hold(5)
  world.now = start + 60_000 - 10
  const refused = world.ask(0, [take({ ...row }, other)])
  await settled()
  const [old] = world.calls
  world.now += 20
  const fresh = world.ask(0, [take({ ...row })])
  await settled()
  const [, call] = world.calls
  await call!.arrive()
  call!.answer()
  await fresh
  await old!.arrive()
  old!.answer() // this returns the lent unit
  await refused
  const before = world.sent
  await ask()
  expect(world.sent).toBe(before)
})

test('A lease ends with its window, however long its call took.', async () => {
  const { world, row, ask, hold, held } = await busy(leased, start + 55_000)
  await hold(0)
  world.now = start + 59_900
  const pending = world.ask(0, [take({ ...row })])
  await settled()
  world.now += 10
  await world.calls[0]!.arrive()
  world.now += 60
  await world.drain()
  await pending
  expect(await held()).toBe(9)
  world.now = start + 60_010
  const before = world.sent
  await ask()
  expect(world.sent).toBe(before + 1)
})

test('A refund under one plan returns no extra units to another plan of the same counter.', async () => {
  const bucket = {
    ...leased,
    algorithm: 'token-bucket',
    limit: 100,
    burst: 400,
    windowMs: 3_600_000,
  } as const
  const { world, row, ask, hold } = await busy(bucket)
  await hold(5)
  const large = { ...row, policy: { ...bucket, burst: 2000 } }
  const left = async (cost: number) => {
    const mode = cost === 0 ? 'peek' : 'take'
    const { states } = await world.evaluate([{ mode, limits: [{ ...large, cost }] }])
    return states[0]![0]!.remaining
  }
  const before = await left(1000)
  world.now += 20_000
  await ask() // refunds the held units, and is refused
  expect((await left(0)) - before).toBeLessThanOrEqual(5 + 1) // plus the units that the bucket has refilled since
})

describe('requests with several limits from isolates whose clocks differ and jump', () => {
  const lease = { max: 12, ttlMs: 300 }
  const short = { windowMs: 200, limit: 150, lease }
  const fixed: Limit['terms'][] = [
    { ...leased, ...short },
    { ...leased, ...short, tag: 'u', windowMs: 1000, limit: 300 },
    { ...small, tag: 'n', windowMs: 200, limit: 25 },
    { ...leased, ...short, tag: 's' }, // in shadow
  ]
  const sliding: Limit['terms'] = { ...leased, ...short, tag: 'w', algorithm: 'sliding-window' }
  const events = fc.array(
    fc.record({
      what: fc.constantFrom(
        ...Array<'ask'>(10).fill('ask'),
        ...Array<'answer'>(6).fill('answer'),
        ...(['arrive', 'arrive', 'pass', 'pass', 'fail', 'jump'] as const),
      ),
      which: fc.nat(20),
      of: fc.nat(5),
      cost: fc.constantFrom(1, 1, 1, 2, 5, 15),
      ms: fc.oneof(fc.nat(3), fc.nat(60), fc.constant(200)),
    }),
    { maxLength: 400, size: 'max' },
  )

  property(
    'Admitted requests are counted in their fixed window, and a sliding window without leases would admit them at the same times.',
    fc.record({ skews: fc.array(fc.nat(50_000), { minLength: 1, maxLength: 3 }), events }),
    async ({ skews, events }) => {
      const world = new World(server, skews)
      const subject = newSubject()
      const passed: { policy: Limit['terms']; cost: number; at: number }[] = []
      const pending: Promise<void>[] = []
      const [a, b, n, s] = fixed as [typeof sliding, typeof sliding, typeof sliding, typeof sliding]
      const ask = async (
        isolate: number,
        enforced: typeof fixed,
        shadow: boolean,
        cost: number,
      ) => {
        const list: StoreRequest[] = [enforced, ...(shadow ? [[s]] : [])].map(
          (policies, index) => ({
            mode: index === 0 ? 'take' : 'follow',
            limits: policies.map((policy) => ({ subject, terms: policy, cost })),
          }),
        )
        const reply = await world.ask(isolate, list)
        if (typeof reply === 'string') return
        const admits = (index: number) => reply.states[index]!.every(({ allowed }) => allowed)
        if (!admits(0)) return
        // Without a call the reply has an estimated time that is never too late.
        const now =
          reply.leased && list.every((_, index) => admits(index)) ? world.now : reply.decidedAt
        expect(reply.decidedAt).toBeLessThanOrEqual(now)
        for (const [index, { limits }] of list.entries()) {
          if (!admits(index)) continue
          for (const [place, { terms: policy }] of limits.entries()) {
            const { decidedAt: at = now } = reply.states[index]![place]!
            passed.push({ policy, cost, at })
          }
        }
      }
      const expectCounted = async () => {
        const looks = fixed.map((policy) => ({
          mode: 'peek',
          limits: [{ subject, terms: policy, cost: 0 }],
        }))
        const { states } = await world.evaluate(looks as StoreRequest[])
        fixed.forEach((policy, index) => {
          const start = world.now - (world.now % policy.windowMs)
          const units = passed
            .filter((one) => one.policy === policy && one.at >= start)
            .reduce((sum, { cost }) => sum + cost, 0)
          const counted = policy.limit - states[index]![0]!.remaining
          expect(units, policy.tag).toBeLessThanOrEqual(counted)
        })
      }
      for (const { what, which, of, cost, ms } of events) {
        const call = world.calls[which % Math.max(1, world.calls.length)]
        const isolate = which % skews.length
        if (what === 'ask') {
          const enforced = [[a], [a, sliding], [a, b], [sliding, n], [a, b, n], [sliding]][of]!
          pending.push(ask(isolate, enforced, of > 2, cost))
        } else if (what === 'pass') world.now += ms
        // The jump is so large that the isolate notices it.
        else if (what === 'jump') world.skews[isolate]! += (of % 2 ? 1 : -1) * 1_000_000
        else if (what === 'fail') call?.fail()
        else {
          await call?.arrive()
          if (what === 'answer') call?.answer()
        }
        await settled()
        await expectCounted()
      }
      await world.drain()
      await Promise.all(pending)
      const model = new Model()
      const inOrder = passed
        .filter(({ policy }) => policy === sliding)
        .sort((one, other) => one.at - other.at)
      for (const { cost, at } of inOrder) {
        const requests = [take({ subject, terms: sliding, cost })] as ModelRequest[]
        expect(model.decide(requests, at).states[0]![0]!.allowed).toBe(true)
      }
    },
  )
})
