/** Laws of leases on a real Redis: several isolates together never exceed a quota, and admit all of it except the units they hold. */
import fc from 'fast-check'
import { describe, expect } from 'vitest'
import type { Limit, StoreReply, StoreRequest } from '../../../../src/core/connection/store.ts'
import { Model, type ModelRequest } from '../../../model/model.ts'
import { settled, World } from '../../../support/isolates.ts'
import { property } from '../../../support/law.ts'
import {
  counted,
  type Leasable,
  type Policy,
  peek,
  policyOf,
  take,
} from '../../../support/leases.ts'
import { isLong } from '../../../support/long.ts'
import { useServer } from '../../../support/server.ts'
import { newSubject } from '../../../support/subjects.ts'

const server = useServer()

/** `test:long` uses the usual number of runs. */
const runs = isLong ? undefined : 12

/** An event of a story. */
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

/** A story with one busy key, a quota that is large enough for a lease, and isolates with different clocks. */
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

/** Plays a story and calls `after` after each event. */
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

describe('isolates never exceed a quota', () => {
  property(
    'With a fixed window, units that pass in a window are counted in that window, whichever calls fail.',
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
    runs,
  )

  property(
    'With a sliding window, the exact model admits every request that passed, at the time it passed.',
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
    runs,
  )

  property(
    'With a token bucket, at most burst + rate · time + max × isolates units pass in any interval.',
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
          // `expect` for every pair would take longer than everything else.
          if (units * windowMs > most) expect(units * windowMs).toBeLessThanOrEqual(most)
        }
      })
    },
    runs,
  )
})

describe('isolates waste no units except those they hold', () => {
  const long = { windowMs: 3_600_000, align: 'first-request' } as const
  // High enough that no unit beyond it is lost.
  const lease = { max: 1000, ttlMs: 1000 }
  const leased = policyOf({ ...long, limit: 300, lease })
  const other = policyOf({ ...long, tag: 'u', limit: 500, lease: { ...lease, ttlMs: 300 } })
  const follower = policyOf({ ...long, tag: 's', limit: 200, lease })
  const unleased = policyOf({ ...long, tag: 'n', limit: 40, lease: undefined })

  property(
    'After refunds, the counted units are the units that passed, even if another limit refused requests.',
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
          await world.drain() // units that arrive after the lease has ended are lost
          world.now += ms
        } else if (what === 'ask') {
          const enforced = [
            limits(subject, leased),
            limits(subject, leased, other),
            limits(subject, leased, unleased),
            limits(subject, leased, other, unleased),
            limits(subject, leased),
          ][of]!.map((row) => ({ ...row, cost }))
          const followers = of > 2 ? limits(subject, follower) : []
          const list = [
            take(...enforced),
            ...followers.map((row): StoreRequest => ({ mode: 'follow', limits: [row] })),
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
      // No recent demand: no new leases, and held units are refunded.
      world.now += 10_000
      for (const isolate of skews.keys()) {
        await world.alone(isolate, [
          take(...limits(subject, leased, other)),
          { mode: 'follow', limits: limits(subject, follower) },
        ])
      }
      for (const policy of [leased, other, follower, unleased]) {
        const units = world.units(({ row }) => row.terms === policy)
        expect([policy.tag, await counted(world, limits(subject, policy)[0]!)]).toEqual([
          policy.tag,
          units,
        ])
      }
    },
    runs,
  )

  /** Stories without calls that take longer than a lease lasts, because their units would be lost. */
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

  property(
    'While no call is in flight, each isolate holds at most max units, and a refusal means that no other units are left.',
    plans,
    async (plan) => {
      const { world, row } = await play(plan)
      const { limit, lease } = plan.policy
      const most = lease!.max * plan.skews.length
      expect((await counted(world, row)) - world.units()).toBeLessThanOrEqual(most)
      for (let refused = 0, turn = 0; refused < 5; turn++) {
        const { states } = await world.alone(turn % plan.skews.length, [take({ ...row })])
        if (states[0]![0]!.allowed) continue
        refused += 1
        expect(limit - world.units()).toBeLessThan(1 + most)
      }
    },
    runs,
  )

  property(
    'One isolate alone admits the whole quota.',
    plans,
    async ({ skews, ...plan }) => {
      const { world, row } = await play({ ...plan, skews: [skews[0]!] })
      let last: StoreReply
      do last = await world.alone(0, [take({ ...row })])
      while (last.states[0]![0]!.allowed)
      expect(world.units()).toBe(plan.policy.limit)
      expect(last.leased).toBeUndefined()
    },
    runs,
  )
})
