import fc from 'fast-check'
import { test } from 'vitest'
import { type Kind, kinds, type Schedule, type Shape, schedule } from './schedules.ts'

/** Schedules in each algorithm: `LAW_RUNS`. The oracle takes them all, every other law a quarter. */
const runs = Number(process.env.LAW_RUNS ?? 1000)
const quarter = Math.ceil(runs / 4)

/** No law hangs, however many runs it is given. */
const timeout = 60_000 + runs * 100

/** Runs in flight at a time. One after the other they would mostly wait for Redis. */
const LANES = 8

/** A law of whatever is drawn. A law that looks at the whole of Redis runs in a single lane. */
export function property<T>(
  claim: string,
  drawn: fc.Arbitrary<T>,
  check: (value: T) => Promise<void>,
  numRuns = quarter,
  lanes = LANES,
) {
  test(claim, { timeout }, async () => {
    // The first lane that fails looks for its smallest counter-example alone.
    let failed: number | undefined
    const lane = async (number: number) => {
      const one = async (value: T) => {
        if (failed !== undefined && failed !== number) return
        await check(value).catch((error) => {
          if (failed === undefined) failed = number
          throw error
        })
      }
      const share = Math.floor((numRuns + number) / lanes)
      if (share > 0) await fc.assert(fc.asyncProperty(drawn, one), { numRuns: share })
    }
    await Promise.all(Array.from({ length: lanes }, (_, number) => lane(number)))
  })
}

export interface Shapes {
  single?: Shape
  mixed?: Shape
  /** Of what it holds; of everything if it does not say. */
  of?: readonly Kind[]
}

/** States a law of every algorithm, and of any mix of limits, subjects and requests. */
export function law(
  claim: string,
  check: (schedule: Schedule) => Promise<void>,
  { single, mixed, of = kinds }: Shapes = {},
  numRuns = quarter,
) {
  const draw = (names: readonly Kind[], usual: Shape, shape: Shape = {}) =>
    schedule(names, { ...usual, ...shape })
  for (const name of of) {
    property(`${name}: ${claim}`, draw([name], { steps: 20, requests: 2 }, single), check, numRuns)
  }
  const mix = { policies: 4, subjects: 3, requests: 4 }
  property(`any mix: ${claim}`, draw(of, mix, mixed), check, numRuns)
}

/** The law whose every run counts: the others are seen from its schedules, too. */
export const fullLaw = (claim: string, check: (schedule: Schedule) => Promise<void>) =>
  law(claim, check, {}, runs)

/** The same with limits that stay as they are. */
export const unchanging = (plan: Schedule): Schedule => ({
  ...plan,
  steps: plan.steps.map((step) => ({ ...step, change: null })),
})

/** The same with one clock for the calendar and the count. */
export const inLine = (plan: Schedule): Schedule => ({
  ...plan,
  steps: plan.steps.map((step) => ({ ...step, skew: 0 })),
})

/** The same with a clock that never goes back. */
export const forward = (plan: Schedule): Schedule => ({
  ...plan,
  steps: plan.steps.map((step) => ({ ...step, forward: true })),
})
