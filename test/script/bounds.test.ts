import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { StoreState } from '../../src/core/connection/store.ts'
import type { ModelLimit, ModelPolicy, ModelRequest } from '../model/model.ts'
import { lawRuns, property } from '../support/law.ts'
import { algorithms, type Counting } from '../support/schedules.ts'
import { useServer } from '../support/server.ts'
import { newSubject } from '../support/subjects.ts'

const server = useServer()

/**
 * The upper bound for the units that pass in any half-open interval of one window's length
 * (docs/explanation/algorithms.md). In such an interval a bucket refills for one millisecond less.
 */
const bounds: Record<Counting, (policy: ModelPolicy) => number> = {
  'fixed-window': ({ limit }) => 2 * limit,
  'sliding-window': ({ limit }) => 2 * limit - 1,
  'sliding-log': ({ limit }) => limit,
  'token-bucket': ({ burst, limit }) => burst + limit - 1,
}

interface Event {
  /** ms since the previous event. Negative if the clock moves back. */
  wait: number
  /** Negative for a refund. */
  cost: number
}

/** Small quotas with many events, so that the bound is reached. */
const pressure = (algorithm: Counting, least: { wait: number; cost: number }) =>
  fc
    .record({
      limit: fc.integer({ min: 1, max: 8 }),
      windowMs: fc.integer({ min: 1, max: 40 }),
      burst: fc.integer({ min: 1, max: 8 }),
      align: fc.constantFrom('first-request' as const, 'clock' as const),
    })
    .chain((terms) => {
      const wait = fc.oneof(
        { weight: 6, arbitrary: fc.integer({ min: 0, max: 4 }) },
        { weight: 2, arbitrary: fc.integer({ min: 0, max: terms.windowMs }) },
        { weight: 1, arbitrary: fc.integer({ min: least.wait * terms.windowMs, max: 0 }) },
      )
      const cost = fc.oneof(fc.constant(1), fc.integer({ min: least.cost, max: 4 }))
      const events = { minLength: 1, maxLength: 60, size: 'max' } as const
      return fc.record({
        policy: fc.constant({ ...terms, tag: 't', algorithm }),
        events: fc.array(fc.record({ wait, cost }), events),
      })
    })

/** Returns the units that were taken and refunded, each with the latest time of any take so far. */
async function history(policy: ModelPolicy, events: Event[]) {
  const subject = newSubject()
  let now = 1_789_000_000_000
  const calls = events.map(({ wait, cost }) => {
    now += wait
    const limits = [{ subject, terms: policy, cost: Math.abs(cost) }]
    const mode = cost < 0 ? ('refund' as const) : ('take' as const)
    return {
      now,
      cost,
      requests: [
        { mode: 'peek' as const, limits },
        { mode, limits },
      ],
    }
  })
  const replies = await Promise.all(calls.map(({ requests, now }) => server.decide(requests, now)))
  let time = 0
  return calls.flatMap(({ now, cost }, index) => {
    const [before, after] = replies[index]!.states.map(([state]) => state!)
    if (!after!.allowed) return []
    if (cost > 0) time = Math.max(time, now)
    // A refund may return less than its cost, so count only the change of `remaining`.
    return [{ time, units: cost > 0 ? cost : before!.remaining - after!.remaining }]
  })
}

async function keepsBound({ policy, events }: { policy: ModelPolicy; events: Event[] }) {
  const bound = bounds[policy.algorithm as Counting](policy)
  const charges = await history(policy, events)
  for (const { time: start } of charges) {
    const within = charges.filter(({ time }) => start <= time && time < start + policy.windowMs)
    const sum = within.reduce((sum, { units }) => sum + units, 0)
    expect(sum, JSON.stringify(charges)).toBeLessThanOrEqual(bound)
  }
}

for (const name of algorithms) {
  property(
    `${name}: No interval admits more than the bound, even if the clock moves back.`,
    pressure(name, { wait: -1, cost: 1 }),
    keepsBound,
  )
  property(
    `${name}: No interval admits more than the bound plus the units refunded in it.`,
    pressure(name, { wait: 0, cost: -4 }),
    keepsBound,
  )
}

/** Plans that share one counter, and the bound for their charges together. */
interface Case {
  policies: ModelPolicy[]
  bound: number
}

/** A step of an adversary that uses the replies of the limit. */
const step = fc.record({
  wait: fc.oneof(
    { weight: 4, arbitrary: fc.constant(0) },
    {
      weight: 4,
      arbitrary: fc.constantFrom('resetAfterMs', 'resetAfterMs', 'retryAfterMs', 'nextAfterMs'),
    },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 24 }) },
  ),
  plan: fc.nat(5),
  take: fc.constantFrom('one', 'one', 'one', 'half', 'half', 'all'),
  /** Instead of a charge: which earlier charge to refund, and whether to refund all of it. */
  refund: fc.oneof(
    { weight: 2, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.record({ of: fc.nat(4), whole: fc.boolean() }) },
  ),
})
type AdversaryStep = typeof step extends fc.Arbitrary<infer T> ? T : never

/**
 * Runs the steps one by one and checks the sum of the units, less refunds, in each interval of one window's length.
 * @param refunds when charges are refunded. Every refund carries the decidedAt of its charge. With `'under any plan'` the first policy
 *   charges, and the policy of each step refunds
 */
async function keepsWithin(
  { policies, bound }: Case,
  steps: AdversaryStep[],
  refunds: 'later' | 'at once' | 'never' | 'under any plan',
) {
  const subject = newSubject()
  const { windowMs } = policies[0]!
  let now = 1_789_000_000_000
  let last: StoreState | undefined
  const charges: { time: number; units: number; policy: ModelPolicy }[] = []
  const ask = async (
    request: Pick<ModelRequest, 'mode' | 'decidedAt'>,
    row: Omit<ModelLimit, 'subject'>,
  ) => (await server.decide([{ ...request, limits: [{ subject, ...row }] }], now)).states[0]![0]!
  /** Units that refunds may have returned too many. */
  let unproved = 0
  const refund = async (charge: (typeof charges)[number], units: number, terms: ModelPolicy) => {
    charge.units -= units
    unproved += indistinct(charge.policy, terms)
    const request = { mode: 'refund' as const, decidedAt: charge.time }
    return ask(request, { terms, cost: units })
  }

  for (const { wait, plan, take, refund: back } of steps) {
    now += typeof wait === 'number' ? wait : (last?.[wait] ?? 0)
    const open = charges.filter(({ units }) => units > 0)
    const isLate = refunds === 'later' || refunds === 'under any plan'
    const old = isLate && back ? open.at(-1 - (back.of % open.length)) : undefined
    const chosen = policies[plan % policies.length]!
    if (old) {
      const terms = refunds === 'later' ? old.policy : chosen
      last = await refund(old, back!.whole ? old.units : 1, terms)
      continue
    }
    const policy = refunds === 'under any plan' ? policies[0]! : chosen
    const { remaining } = await ask({ mode: 'peek' }, { terms: policy, cost: 0 })
    const units = { one: 1, half: Math.ceil(remaining / 2), all: remaining }[take]
    if (units < 1) continue
    last = await ask({ mode: 'take' }, { terms: policy, cost: units })
    if (!last.allowed) continue
    const charge = { time: now, units, policy }
    charges.push(charge)
    if (refunds === 'at once' && back) last = await refund(charge, units, policy)
  }
  for (const { time: start } of charges) {
    const within = charges.filter(({ time }) => start <= time && time < start + windowMs)
    const sum = within.reduce((sum, { units }) => sum + units, 0)
    const story = charges.map(({ time, units, policy: { limit } }) => [time, units, limit])
    expect(sum, JSON.stringify({ policies, story })).toBeLessThanOrEqual(bound + unproved)
  }
}

/**
 * The most units that a refund under smaller terms returns too many: those of a state that runs out in the same millisecond at both rates
 * (docs/explanation/algorithms.md).
 */
const indistinct = (charged: ModelPolicy, refunded: ModelPolicy) =>
  refunded.limit < charged.limit
    ? 1 / (refunded.windowMs / refunded.limit - charged.windowMs / charged.limit)
    : 0

/** Plans of one policy as a configuration allows them: each burst equals its limit, or all bursts are equal. */
const plansOf = (algorithm: Counting): fc.Arbitrary<Case> =>
  fc
    .record({
      windowMs: fc.oneof(
        fc.constantFrom(24, 48, 240, 2400),
        fc.integer({ min: 1, max: 60 }), // a unit may take a fractional number of milliseconds to flow back
      ),
      largest: fc.constantFrom(8, 12, 24),
      others: fc.uniqueArray(fc.constantFrom(1, 2, 3, 4, 6), { minLength: 1, maxLength: 2 }),
      burst: fc.option(fc.integer({ min: 1, max: 12 }), { freq: 2 }),
      align: fc.constantFrom('first-request' as const, 'clock' as const),
    })
    .map(({ largest, others, burst, ...terms }) => {
      const planOf = (limit: number) => ({
        ...terms,
        tag: 't',
        algorithm,
        limit,
        burst: burst ?? limit,
      })
      // Half of the charges use the largest plan.
      const policies = others.flatMap((limit) => [planOf(largest), planOf(limit)])
      return { policies, bound: bounds[algorithm](policies[0]!) }
    })

/** Several histories run concurrently, so that their commands share round trips. */
const sideBySide = (one: fc.Arbitrary<Case>) =>
  fc.array(fc.tuple(one, fc.array(step, { minLength: 1, maxLength: 120, size: 'max' })), {
    minLength: 1,
    maxLength: 12,
    size: 'max',
  })

/** The plan affects both the refill and the run-out of a bucket, so buckets get most of the runs. */
const adversaries = (name: Counting) => Math.ceil(lawRuns / (name === 'token-bucket' ? 20 : 80))

for (const name of algorithms) {
  for (const refunds of ['never', 'at once'] as const) {
    const when = refunds === 'never' ? 'without refunds' : 'with immediate refunds'
    property(
      `${name}: Plans that share a key keep no more than the bound of the largest plan, ${when}.`,
      sideBySide(plansOf(name)),
      async (histories) => {
        await Promise.all(histories.map(([one, steps]) => keepsWithin(one, steps, refunds)))
      },
      adversaries(name),
    )
  }
  property(
    `${name}: No interval keeps more than the bound, however late its refunds come.`,
    sideBySide(
      pressure(name, { wait: 0, cost: 1 }).map(({ policy }) => ({
        policies: [policy],
        bound: bounds[name](policy),
      })),
    ),
    async (histories) => {
      await Promise.all(histories.map(([one, steps]) => keepsWithin(one, steps, 'later')))
    },
    adversaries(name),
  )
}

/** A window so long that the run-out of a state tells the plans apart. */
const longWindow = plansOf('token-bucket').map(({ policies, bound }) => ({
  policies: policies.map((policy) => ({ ...policy, windowMs: 24_000 })),
  bound,
}))

property(
  'token-bucket: No interval keeps more than the bound of the plan that charges, whichever plan refunds.',
  sideBySide(longWindow),
  async (histories) => {
    await Promise.all(histories.map(([one, steps]) => keepsWithin(one, steps, 'under any plan')))
  },
  adversaries('token-bucket'),
)

const steadily = Array.from({ length: 10 }, (_, index) => index * 100)

/** Limit 10 per 1000 ms, burst 5. */
const worst: [Counting, at: number[], passed: number][] = [
  ['fixed-window', [999, 1000, 1998], 20],
  ['sliding-window', [999, 1998], 19],
  ['sliding-log', [0, 500, 999], 10],
  // The half-open interval excludes its end, where the fifteenth unit is taken.
  ['token-bucket', steadily, 14],
]

test.each(worst.filter(([name]) => algorithms.includes(name)))(
  '%s: Single units taken at %j reach the bound.',
  async (algorithm, at, passed) => {
    const policy = {
      tag: 't',
      limit: 10,
      windowMs: 1000,
      burst: 5,
      align: 'clock',
      algorithm,
    } as const
    const one = {
      mode: 'take' as const,
      limits: [{ subject: newSubject(), terms: policy, cost: 1 }],
    }
    const burst = Array<typeof one>(20).fill(one)
    const replies = await Promise.all(at.map((now) => server.decide(burst, now)))
    const states = replies.flatMap(({ states }) => states.flat())
    expect(states.filter(({ allowed }) => allowed).length).toBe(passed)
  },
)
