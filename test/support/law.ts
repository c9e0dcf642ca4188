import fc from 'fast-check'
import { test } from 'vitest'
import { type Kind, kinds, type Schedule, type Shape, schedule } from './schedules.ts'

/** Schedules in each algorithm: `LAW_RUNS`. The oracle takes them all, every other law a quarter. */
const runs = Number(process.env.LAW_RUNS ?? 1000)
const quarter = Math.ceil(runs / 4)

/** No law hangs, however many runs it is given. */
const timeout = 60_000 + runs * 100

/** Something that holds whatever is drawn. */
export function property<T>(
  claim: string,
  drawn: fc.Arbitrary<T>,
  check: (value: T) => Promise<void>,
  numRuns = quarter,
) {
  test(claim, { timeout }, () => fc.assert(fc.asyncProperty(drawn, check), { numRuns }))
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
