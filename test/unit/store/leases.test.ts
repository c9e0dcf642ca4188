/** Leases over a real Redis: what several isolates admit together, and what becomes of what they do not need. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Limit, StoreOptions, StoreReply, StoreRequest } from '../../../src/store/store.ts'
import { Model, type ModelRequest } from '../../model/model.ts'
import { settled, World } from '../../support/isolates.ts'
import { property } from '../../support/law.ts'
import { useServer } from '../../support/server.ts'
import { newSubject } from '../../support/subjects.ts'

const server = useServer()

type Policy = Limit['terms']
type Leasable = 'fixed-window' | 'sliding-window' | 'token-bucket'

const policyOf = (change: Partial<Policy> = {}): Policy => ({
  tag: 't',
  algorithm: 'fixed-window',
  limit: 1000,
  windowMs: 60_000,
  burst: 1000,
  align: 'clock',
  localShare: 1,
  lease: { max: 10, ttlMs: 1000 },
  ...change,
})
const take = (...limits: Limit[]): StoreRequest => ({ mode: 'take', limits: limits })
const peek = (row: Limit): StoreRequest => ({ mode: 'peek', limits: [{ ...row, cost: 0 }] })

/** What happens next. */
interface Event {
  what: 'ask' | 'pass' | 'arrive' | 'answer' | 'fail' | 'reset'
  which: number
  cost: number
  ms: number
}

const event = (whats: Event['what'][], windowMs: number): fc.Arbitrary<Event> =>
  fc.record({
    what: fc.constantFrom(...whats),
    which: fc.nat(20),
    cost: fc.constantFrom(1, 1, 1, 1, 2, 5),
    ms: fc.oneof(fc.nat(3), fc.nat(30), fc.nat(windowMs), fc.constant(windowMs)),
  })

const usual: Event['what'][] = [
  ...Array<'ask'>(8).fill('ask'),
  ...Array<'arrive'>(4).fill('arrive'),
  ...Array<'answer'>(4).fill('answer'),
  'pass',
]

interface Story {
  policy: Policy
  skews: number[]
  events: Event[]
}

/** A busy key, quotas worth a lease, isolates whose clocks differ. */
const story = (algorithm: Leasable, whats = usual): fc.Arbitrary<Story> =>
  fc
    .record({
      limit: fc.integer({ min: 30, max: 400 }),
      burst: fc.integer({ min: 30, max: 400 }),
      windowMs: fc.constantFrom(50, 200, 1000),
      align: fc.constantFrom('clock' as const, 'first-request' as const),
      max: fc.integer({ min: 2, max: 40 }),
      ttlMs: fc.constantFrom(20, 100, 2000),
      isolates: fc.integer({ min: 1, max: 3 }),
    })
    .chain(({ max, ttlMs, isolates, ...terms }) =>
      fc.record({
        policy: fc.constant(policyOf({ ...terms, algorithm, lease: { max, ttlMs } })),
        skews: fc.array(fc.integer({ min: -50_000, max: 50_000 }), {
          minLength: isolates,
          maxLength: isolates,
        }),
        events: fc.array(event(whats, terms.windowMs), { maxLength: 400, size: 'max' }),
      }),
    )

/** Plays a story, and looks after each event. */
async function play(
  { policy, skews, events }: Story,
  after: (world: World, row: Limit) => Promise<void> = async () => {},
) {
  const world = new World(server, skews)
  const row: Limit = { subject: newSubject(), terms: policy, cost: 1 }
  const answers: Promise<StoreReply | string>[] = []
  for (const { what, which, cost, ms } of events) {
    const call = world.calls[which % Math.max(1, world.calls.length)]
    const isolate = which % skews.length
    if (what === 'ask') answers.push(world.ask(isolate, [take({ ...row, cost })]))
    else if (what === 'pass') world.now += ms
    else if (what === 'arrive') await call?.arrive()
    else if (what === 'answer') {
      await call?.arrive()
      call?.answer()
    } else if (what === 'fail') call?.fail()
    else answers.push(world.ask(isolate, [{ mode: 'reset', limits: [row] }]))
    await settled()
    await after(world, row)
  }
  await world.drain()
  return { world, row, replies: await Promise.all(answers) }
}

const failing: Event['what'][] = [...usual, 'fail']

describe('never over', () => {
  property(
    'fixed-window: what passed in a window was counted in it, whatever fails',
    story('fixed-window', failing),
    async (plan) => {
      await play(plan, async (world, row) => {
        const { limit, windowMs } = row.terms
        const state = (await world.evaluate([peek(row)])).states[0]![0]!
        if (state.resetAfterMs === 0) return
        const start = world.now + state.resetAfterMs - windowMs
        expect(world.units(({ at }) => at >= start)).toBeLessThanOrEqual(limit - state.remaining)
      })
    },
  )

  property(
    'sliding-window: the exact one admits all that passed, when it passed',
    story('sliding-window', failing),
    async (plan) => {
      const { world } = await play(plan)
      const model = new Model()
      const inOrder = [...world.passed].sort((one, other) => one.at - other.at)
      for (const { row, at } of inOrder) {
        const { states } = model.decide([take(row) as ModelRequest], at)
        expect(states[0]![0]!.allowed, JSON.stringify(inOrder)).toBe(true)
      }
    },
  )

  property(
    'token-bucket: at most burst + rate · time + max × isolates, in any time',
    story('token-bucket', failing),
    async (plan) => {
      const { world } = await play(plan)
      const { limit, burst, windowMs, lease } = plan.policy
      const inOrder = [...world.passed].sort((one, other) => one.at - other.at)
      inOrder.forEach((first, index) => {
        let units = 0
        for (const { row, at } of inOrder.slice(index)) {
          units += row.cost
          const most = (burst + lease!.max * plan.skews.length) * windowMs + limit * (at - first.at)
          // `expect` for every pair would take longer than all the rest.
          if (units * windowMs > most) expect(units * windowMs).toBeLessThanOrEqual(most)
        }
      })
    },
  )
})

/** Units of a row's quota that are counted in Redis. */
const counted = async (world: World, row: Limit) =>
  row.terms.limit - (await world.evaluate([peek(row)])).states[0]![0]!.remaining

describe('never under, but for what is held', () => {
  const long = { windowMs: 3_600_000, align: 'first-request' } as const
  // So high that nothing is lost beyond it.
  const lease = { max: 1000, ttlMs: 1000 }
  const leased = policyOf({ ...long, limit: 300, lease })
  const other = policyOf({ ...long, tag: 'u', limit: 500, lease: { ...lease, ttlMs: 300 } })
  const shadow = policyOf({ ...long, tag: 's', limit: 200, lease })
  const asked = policyOf({ ...long, tag: 'n', limit: 40, lease: undefined })

  property(
    'what is counted has passed, once it was given back: also where another limit refused',
    fc.record({
      skews: fc.array(fc.nat(1000), { minLength: 1, maxLength: 3 }),
      events: fc.array(fc.record({ of: fc.nat(4), event: event(usual, 1000) }), {
        maxLength: 300,
        size: 'max',
      }),
    }),
    async ({ skews, events }) => {
      const world = new World(server, skews)
      const limits = (subject: string, ...policies: Policy[]) =>
        policies.map((policy): Limit => ({ subject, terms: policy, cost: 1 }))
      const subject = newSubject()
      const answers: Promise<unknown>[] = []
      for (const { of, event } of events) {
        const { what, which, cost, ms } = event
        const call = world.calls[which % Math.max(1, world.calls.length)]
        if (what === 'pass') {
          await world.drain() // what comes later than a lease lasts is lost
          world.now += ms
        } else if (what === 'ask') {
          const enforced = [
            limits(subject, leased),
            limits(subject, leased, other),
            limits(subject, leased, asked),
            limits(subject, leased, other, asked),
            limits(subject, leased),
          ][of]!.map((row) => ({ ...row, cost }))
          const shadows = of > 2 ? limits(subject, shadow) : []
          const list = [
            take(...enforced),
            ...shadows.map((row): StoreRequest => ({ mode: 'follow', limits: [row] })),
          ]
          answers.push(world.ask(which % skews.length, list))
        } else {
          await call?.arrive()
          if (what === 'answer') call?.answer()
        }
        await settled()
      }
      await world.drain()
      await Promise.all(answers)
      // Nobody has asked lately: nothing is worth a lease, and what was one goes back.
      world.now += 10_000
      for (const isolate of skews.keys()) {
        await world.alone(isolate, [
          take(...limits(subject, leased, other)),
          { mode: 'follow', limits: limits(subject, shadow) },
        ])
      }
      for (const policy of [leased, other, shadow, asked]) {
        const units = world.units(({ row }) => row.terms === policy)
        expect([policy.tag, await counted(world, limits(subject, policy)[0]!)]).toEqual([
          policy.tag,
          units,
        ])
      }
    },
  )

  /** Without calls that take longer than a lease lasts: what they bring is lost. */
  const plans = story('fixed-window').map(({ policy, events, ...plan }) => ({
    ...plan,
    events: events.slice(0, 150).map((one) => ({ ...one, ms: one.ms % 2 })),
    policy: {
      ...policy,
      ...long,
      limit: 32 + (policy.limit % 100),
      lease: { max: 1 + policy.lease!.max, ttlMs: 1000 },
    },
  }))

  property('isolates hold at most max each, while nothing is on its way', plans, async (plan) => {
    const { world, row } = await play(plan)
    const most = plan.policy.lease!.max * plan.skews.length
    expect((await counted(world, row)) - world.units()).toBeLessThanOrEqual(most)
  })

  property(
    'who is refused while nothing is on its way: less than max × isolates is left',
    plans,
    async (plan) => {
      const { world, row } = await play(plan)
      const { limit, lease } = plan.policy
      for (let refused = 0, turn = 0; refused < 5; turn++) {
        const { states } = await world.alone(turn % plan.skews.length, [take({ ...row })])
        if (states[0]![0]!.allowed) continue
        refused += 1
        expect(limit - world.units()).toBeLessThan(1 + lease!.max * plan.skews.length)
      }
    },
  )

  property('one isolate alone admits the whole quota', plans, async ({ skews, ...plan }) => {
    const { world, row } = await play({ ...plan, skews: [skews[0]!] })
    let last: StoreReply
    do last = await world.alone(0, [take({ ...row })])
    while (last.states[0]![0]!.allowed)
    expect(world.units()).toBe(plan.policy.limit)
    expect(last.leased).toBeUndefined()
  })
})

const start = 1_789_000_000_000

/** An isolate that has asked so often for a key that it takes leases, and holds some of one. */
async function busy(policy: Policy, held = 5, now = start) {
  const world = new World(server, [0])
  world.now = now
  const row: Limit = { subject: newSubject(), terms: policy, cost: 1 }
  const ask = (cost = 1) => world.alone(0, [take({ ...row, cost })])
  let before: number
  do {
    before = world.sent
    await ask()
  } while (world.units() < 2 * policy.lease!.max + 30 || before === world.sent)
  for (let left = policy.lease!.max - 1; left > held; left--) await ask()
  return {
    world,
    row,
    ask,
    held: async () =>
      (await counted(world, row)) - world.units((passed) => passed.row.terms === policy),
  }
}

describe('a lease', () => {
  const big = policyOf({ limit: 100_000, burst: 100_000, windowMs: 3_600_000 })

  test.each([10, 50])('of %i makes so many requests one call', async (max) => {
    const { world, ask } = await busy({ ...big, lease: { max, ttlMs: 10_000 } }, 0)
    const before = world.sent
    for (let times = 0; times < 10 * max; times++) await ask()
    expect(world.sent - before).toBe(10)
  })

  test('is of half of what is asked while it lasts, and of nothing where nobody asked lately', async () => {
    const { world, row, ask, held } = await busy({ ...big, lease: { max: 1000, ttlMs: 1000 } }, 0)
    world.now += 5000
    await ask()
    expect(await held()).toBe(0)
    // 20 a second, one after the other.
    for (let times = 0; times < 60; times++) {
      world.now += 50
      await ask()
    }
    const sizes: number[] = []
    for (let times = 0; times < 60; times++) {
      world.now += 50
      const before = world.sent
      await ask()
      if (world.sent > before) sizes.push(1 + (await held()))
    }
    expect(Math.min(...sizes)).toBeGreaterThanOrEqual(9)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(11)
    expect(row.cost).toBe(1)
  })

  test('is at most a sixteenth of what is left, so that the last units go one by one', async () => {
    const policy = { ...big, limit: 400, lease: { max: 20, ttlMs: 10_000 } }
    const { ask, row, world, held } = await busy(policy, 0)
    while ((await ask()).states[0]![0]!.allowed) {
      const [taken, left] = [await held(), row.terms.limit - world.units()]
      expect(taken).toBeLessThanOrEqual(Math.max(0, left / 15))
    }
    expect(world.units()).toBe(400)
  })

  /** In the middle of a minute, 30 s before its end. */
  const half = 1_789_000_050_000
  test.each<[Leasable, ttlMs: number, lastsMs: number]>([
    ['fixed-window', 1000, 1000],
    ['fixed-window', 60_000, 30_000],
    ['sliding-window', 1000, 1000],
    ['sliding-window', 60_000, 30_000],
    ['token-bucket', 60_000, 60_000],
  ])('of a %s for %i ms is spent for %i ms', async (algorithm, ttlMs, lastsMs) => {
    const lease = { max: 10, ttlMs }
    const { world, ask } = await busy({ ...big, algorithm, windowMs: 60_000, lease }, 5, half)
    world.now = half + lastsMs - 1
    const before = world.sent
    await ask()
    expect(world.sent).toBe(before)
    world.now += 1
    await ask()
    expect(world.sent).toBe(before + 1)
  })

  test('that has ended goes back with the next call, against its decidedAt', async () => {
    const { world, row, held } = await busy(big, 5)
    world.now += 20_000
    void world.ask(0, [take({ ...row })])
    await settled()
    const [back, own] = world.calls[0]!.requests
    expect(back).toMatchObject({ mode: 'refund', limits: [{ cost: 5 }], decidedAt: start })
    expect(own).toMatchObject({ mode: 'take', limits: [{ cost: 1 }] })
    await world.drain()
    expect(await held()).toBe(0)
  })

  test('that was of a window which is over does not go back', async () => {
    const { world, row } = await busy({ ...big, windowMs: 60_000 }, 5)
    world.now += 60_000
    void world.ask(0, [take({ ...row })])
    await settled()
    expect(world.calls[0]!.requests.map(({ mode }) => mode)).not.toContain('refund')
  })

  test('tells what is left and what it holds, as if it had asked', async () => {
    const { world, ask } = await busy(big, 5)
    world.now += 300
    const told = await ask()
    expect(told).toEqual({
      decidedAt: world.now,
      states: [
        [
          {
            allowed: true,
            remaining: big.limit - world.units(),
            retryAfterMs: 0,
            resetAfterMs: big.windowMs - (world.now % big.windowMs),
            nextAfterMs: big.windowMs - (world.now % big.windowMs),
          },
        ],
      ],
      leased: true,
    })
  })

  test('is spent while the store is away, to its end', async () => {
    const { world, row } = await busy(big, 5)
    const answers = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const asked = world.ask(0, [take({ ...row })])
        await settled()
        for (const call of [...world.calls]) call.fail()
        return asked
      }),
    )
    expect(answers.map((answer) => (typeof answer === 'string' ? answer : 'passed'))).toEqual([
      ...Array(5).fill('passed'),
      ...Array(3).fill('timeout'),
    ])
  })

  test.each<[what: string, change: Partial<Policy>]>([
    ['limit', { limit: 50_000 }],
    ['burst', { burst: 50_000 }],
    ['lease', { lease: { max: 9, ttlMs: 10_000 } }],
  ])('by another %s is another', async (_, change) => {
    const { world, row } = await busy(big, 5)
    const before = world.sent
    await world.alone(0, [take({ ...row, terms: { ...row.terms, ...change } })])
    expect(world.sent).toBe(before + 1)
  })

  test.each(['reset', 'ban', 'unban'] as const)('is forgotten at a %s', async (mode) => {
    const { world, row, ask } = await busy(big, 5)
    const penalty = { tag: 'p', after: 1, withinMs: 1, banMs: 1, maxMs: 1 }
    const limits = [{ ...row, ...(mode === 'ban' && { penalty }) }]
    const before = world.sent
    const [reset] = [world.isolates[0]!.decideEach([[{ mode, limits: limits }]])]
    await world.drain()
    await reset
    await ask()
    expect(world.sent).toBe(before + 2)
  })

  test('that is on its way at a reset is not taken in', async () => {
    const { world, row, ask } = await busy(big, 0)
    const refilling = world.ask(0, [take({ ...row })])
    await settled()
    expect(world.calls[0]!.requests.map(({ mode }) => mode)).toEqual(['take', 'follow'])
    const reset = world.ask(0, [{ mode: 'reset', limits: [row] }])
    await settled()
    await world.drain()
    await Promise.all([refilling, reset])
    const before = world.sent
    await ask()
    expect(world.sent).toBe(before + 1)
  })

  test('does not outlive a clock that was set back', async () => {
    const { world, ask } = await busy(big, 5)
    world.now -= 2000
    const before = world.sent
    await ask()
    expect(world.sent).toBe(before + 1)
  })

  test('makes a refusal by Redis no proof, while some of it is held', async () => {
    const { world, row } = await busy(big, 5)
    const list = [take({ ...row, cost: 100_001 })]
    const refused = async (isolate: Promise<unknown>) => {
      await world.drain()
      return (await isolate) as StoreReply
    }
    expect((await refused(world.isolates[0]!.decide(list, { now: world.now }))).leased).toBe(true)
    const [each] = (await refused(world.isolates[0]!.decideEach([list]))) as never as StoreReply[]
    expect(each!.leased).toBe(true)
  })
})

describe('a request with another limit', () => {
  const big = policyOf({ limit: 100_000, windowMs: 3_600_000 })
  const small = policyOf({ tag: 'small', limit: 1, windowMs: 3_600_000, lease: undefined })

  test('asks for that only, and puts back what it was lent where that refuses', async () => {
    const { world, row, held } = await busy(big, 5)
    const other: Limit = { subject: newSubject(), terms: small, cost: 1 }
    const both = async () => {
      const asked = world.ask(0, [take({ ...row }, { ...other })])
      await settled()
      expect(world.calls[0]!.requests).toEqual([take(other)])
      await world.drain()
      return (await asked) as StoreReply
    }
    const admitted = (await both()).states[0]!.map(({ allowed }) => allowed)
    expect([admitted, await held()]).toEqual([[true, true], 4])
    const [mine, its] = (await both()).states[0]!
    expect([mine!.allowed, its!.allowed, await held()]).toEqual([true, false, 4])
    expect(mine!.remaining).toBe(big.limit - world.units(({ row }) => row.terms === big))
  })

  test.each([
    [0, 9], // the first brings as many as there may be beside its own
    [5, 4], // five have what was held in hands
  ])('takes no more than max with others at once: of %i that were held', async (lent, taken) => {
    const { world, row } = await busy(big, lent)
    const both = Array.from({ length: 8 }, () => {
      const other: Limit = { subject: newSubject(), terms: small, cost: 1 }
      return world.ask(0, [take({ ...row }, other)])
    })
    await settled()
    const more = world.calls.flatMap(({ requests }) =>
      requests.filter(({ mode }) => mode === 'follow').map(({ limits }) => limits[0]!.cost),
    )
    expect(more).toEqual([taken])
    await world.drain()
    await Promise.all(both)
  })

  test('does not wait: it has a call to make anyway', async () => {
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

describe('who finds a call under way that brings enough', () => {
  const big = policyOf({ limit: 100_000, windowMs: 3_600_000 })
  /** So many requests at once, nothing having been held before. */
  async function crowd(count: number) {
    const { world, row } = await busy(big, 0)
    const before = world.sent
    const answers = Array.from({ length: count }, () => world.ask(0, [take({ ...row })]))
    await settled()
    return { world, row, answers, sent: () => world.sent - before }
  }

  test('waits for it, and nobody else asks', async () => {
    const { world, answers, sent } = await crowd(64)
    expect(sent()).toBe(7)
    await world.drain()
    expect(sent()).toBe(7)
    const replies = (await Promise.all(answers)) as StoreReply[]
    const left = replies.map(({ states }) => states[0]![0]!.remaining)
    expect(new Set(replies.map(({ states }) => states[0]![0]!.allowed))).toEqual(new Set([true]))
    expect(Math.max(...left)).toBeGreaterThan(0)
  })

  test('asks himself where it fails', async () => {
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

  test('waits no longer than half of his deadline', async () => {
    const { world, row, answers, sent } = await crowd(1)
    const late = world.isolates[0]!.decide([take({ ...row })], { deadlineMs: 100 })
    await settled()
    expect(sent()).toBe(1)
    await expect.poll(sent).toBe(2)
    await world.drain()
    await late
    await Promise.all(answers)
  })

  test('and does not wait for it to the end leaves his units, as many as may be held', async () => {
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

  test('of a request that is gone does not wait after its deadline, nor does anybody find it', async () => {
    const { world, row } = await crowd(1)
    world.now += 600_001
    const { length } = world.calls
    void world.ask(0, [take({ ...row })])
    await settled()
    expect(world.calls).toHaveLength(length + 1)
  })
})

describe('what is not leased', () => {
  const big = policyOf({ limit: 100_000, windowMs: 3_600_000 })
  const idempotency = { key: 'k', fingerprint: 'f', forMs: 1000 }

  test.each<[what: string, StoreRequest['mode'], cost: number, StoreOptions]>([
    ['a peek', 'peek', 1, {}],
    ['a cost of 0', 'take', 0, {}],
    ['a refund', 'refund', 1, {}],
    ['a call that is decided once', 'take', 1, { idempotency }],
    ['a time that is said', 'take', 1, { now: 1_789_000_000_000 }],
  ])('%s goes as it is', async (_, mode, cost, options) => {
    const { world, row } = await busy(big, 5)
    const requests: StoreRequest[] = [{ mode, limits: [{ ...row, cost }] }]
    const asked = world.isolates[0]!.decide(requests, options)
    await settled()
    expect(world.calls[0]!.requests).toEqual(requests)
    await world.drain()
    await asked
  })

  test('more than a call of the script takes is left out', async () => {
    const limits = Array.from(
      { length: 120 },
      (_, index): Limit => ({
        subject: `${index}`,
        terms: { ...big, tag: `t${index}` },
        cost: 1,
      }),
    )
    const world = new World(server, [0])
    for (let times = 0; times < 6; times++) {
      const asked = world.ask(
        0,
        limits.map((row) => take({ ...row })),
      )
      await settled()
      expect(world.calls.every(({ requests }) => requests.length <= 128)).toBe(true)
      await world.drain()
      await asked
    }
  })

  test('quotas of which there are too many at once lose what they hold', async () => {
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
