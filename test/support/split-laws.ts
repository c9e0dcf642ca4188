/** Laws of splitting: several parts decide like one database, and never exceed a limit. */
import fc from 'fast-check'
import { describe, expect } from 'vitest'
import type {
  Store,
  StoreOptions,
  StoreReply,
  StoreRequest,
} from '../../src/core/connection/store.ts'
import { forward, inLine, property, unchanging } from './law.ts'
import { isLong } from './long.ts'
import { formatCalls, runOnOracle } from './run-on-oracle.ts'
import { algorithms, kinds, type Schedule, type Shape, schedule } from './schedules.ts'
import { allowed, policy, row, take } from './split-redis.ts'
import { newSubject } from './subjects.ts'

/** A split store, with its background work. */
interface Split {
  store: Store
  waitUntil: NonNullable<StoreOptions['waitUntil']>
  settled: () => Promise<unknown>
}

const runs = isLong ? 60 : 20

const withoutTimes = ({ states }: StoreReply) =>
  states.map((limits) => limits.map(({ decidedAt: at, ...state }) => state))

/** Groups each request with its follows. A follow before the first other request is a group by itself. */
function apart<R extends { mode: StoreRequest['mode'] }>(requests: R[]): R[][] {
  const groups: R[][] = []
  for (const request of requests) {
    const follows = request.mode === 'follow' && groups.some(([one]) => one!.mode !== 'follow')
    if (follows) groups.at(-1)!.push(request)
    else groups.push([request])
  }
  return groups
}

/** The same in the form that limiters send: a request and its follows share no limit, and each follow has one limit. */
const distinct = (plan: Schedule): Schedule => ({
  ...plan,
  steps: plan.steps.map((step) => ({
    ...step,
    requests: apart(step.requests).flatMap((group) => {
      const met = new Set<string>()
      return group
        .map((ask) => ({
          ...ask,
          limits: ask.limits.filter(({ policy, subject }) => {
            const id = `${policy} ${subject}`
            return !met.has(id) && met.add(id)
          }),
        }))
        .flatMap((ask) =>
          ask.mode === 'follow' ? ask.limits.map((row) => ({ ...ask, limits: [row] })) : ask,
        )
        .filter(({ limits }) => limits.length > 0)
    }),
  })),
})

const withoutFollows = (plan: Schedule): Schedule => ({
  ...plan,
  steps: plan.steps.map((step) => ({
    ...step,
    requests: step.requests.map((ask) => (ask.mode === 'follow' ? { ...ask, mode: 'take' } : ask)),
  })),
})

/** The limits of `distinct` in a list. */
const valuesIn = (list: StoreRequest[]) =>
  list
    .flatMap(({ limits }) => limits)
    .filter(({ terms }) => terms.algorithm === 'distinct')
    .map(({ subject, terms }) => `${subject} ${terms.tag}`)

/** Checks the laws. `newStore` creates a store for each schedule. */
export function splitLaws(newStore: () => Split) {
  describe('the laws of splitting', () => {
    // Without concurrency: a refund releases slots by their id, including those of an earlier request with the same id.
    const shape = { policies: 4, subjects: 6, requests: 4, steps: 8 }
    const plans = (shape: Shape) =>
      schedule(
        kinds.filter((kind) => kind !== 'concurrency'),
        shape,
      )

    const asInOne = async (plan: Schedule) => {
      const { calls, replies } = runOnOracle(plan)
      const { store, waitUntil, settled } = newStore()
      const used = new Set<string>()
      for (const [index, { now, requests }] of calls.entries()) {
        const expected = [...replies[index]!.states]
        for (const group of apart(requests) as StoreRequest[][]) {
          const states = withoutTimes(await store.decide(group, { now, waitUntil }))
          await settled()
          const inOne = expected.splice(0, group.length)
          expect(states, formatCalls(calls.slice(0, index + 1))).toEqual(inOne)
          const values = valuesIn(group)
          // From here on a value counts from a use that another part has refused: docs/explanation/guarantees.md.
          const isRefused = inOne[0]!.some(({ allowed }) => !allowed)
          if (isRefused && values.some((id) => used.has(id))) return
          for (const id of values) used.add(id)
        }
      }
    }
    const serial = (plan: Schedule) => distinct(inLine(forward(unchanging(plan))))

    property(
      'Serial requests get the same answers as from one database.',
      plans(shape).map(serial),
      asInOne,
      runs,
    )

    property(
      'Serial requests without follows get the same bans as from one database.',
      plans({ ...shape, penalties: true }).map((plan) => serial(withoutFollows(plan))),
      asInOne,
      runs,
    )

    property(
      'Concurrent requests exceed no limit, and units of refused requests are refunded.',
      fc.record({
        algorithm: fc.constantFrom(...algorithms),
        limits: fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 2, maxLength: 5 }),
        asks: fc.array(
          fc.array(fc.record({ of: fc.nat(4), cost: fc.integer({ min: 1, max: 3 }) }), {
            minLength: 1,
            maxLength: 4,
          }),
          { minLength: 2, maxLength: 25 },
        ),
        many: fc.boolean(),
      }),
      async ({ algorithm, limits, asks, many }) => {
        const { store, waitUntil, settled } = newStore()
        const windowMs = 31 * 86_400_000 // units come back only by refunds
        const quotas = limits.map((limit, index) =>
          row(newSubject(), {
            terms: { ...policy, tag: `t${index}`, algorithm, limit, burst: limit, windowMs },
          }),
        )
        const lists = asks.map((ask) => {
          const byQuota = new Map(ask.map(({ of, cost }) => [of % quotas.length, cost]))
          return [take(...[...byQuota].map(([index, cost]) => ({ ...quotas[index]!, cost })))]
        })
        const start = performance.now()
        const replies = many
          ? await store.decideEach(lists, { waitUntil })
          : await Promise.all(lists.map((list) => store.decide(list, { waitUntil })))
        await settled()
        const tookMs = performance.now() - start
        const passed = lists.filter((_, index) =>
          allowed(replies[index] as StoreReply).every((one) => one),
        )
        for (const { subject, terms: policy } of quotas) {
          const charged = passed
            .flatMap(([request]) => request!.limits)
            .filter((one) => one.subject === subject)
            .reduce((sum, { cost }) => sum + cost, 0)
          expect(charged).toBeLessThanOrEqual(policy.limit)
          const rest = policy.limit - charged
          const reply = await store.decide([
            { mode: 'peek', limits: [{ subject, terms: policy, cost: rest }] },
          ])
          const { remaining, retryAfterMs } = (reply as StoreReply).states[0]![0]!
          if (algorithm === 'token-bucket') {
            // A refund does not include the units that flow while it is in flight.
            expect(remaining).toBeLessThanOrEqual(rest)
            expect(retryAfterMs).toBeLessThanOrEqual(Math.ceil(tookMs) * lists.length)
          } else {
            expect(remaining).toBe(rest)
          }
        }
      },
      runs,
    )
  })
}
