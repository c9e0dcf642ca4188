import fc from 'fast-check'
import { test } from 'vitest'
import { isLong } from './long.ts'
import { type Kind, kinds, type Schedule, type Shape, schedule } from './schedules.ts'

/** The number of schedules of each algorithm. `LAW_RUNS` overrides it. The oracle runs all, other laws a quarter. */
export const lawRuns = Number(process.env.LAW_RUNS ?? (isLong ? 1000 : 64))
const quarter = Math.ceil(lawRuns / 4)

/** The timeout of a law in ms. It grows with the number of runs. */
const timeout = 60_000 + lawRuns * 100

/** A law that takes too long fails before its test does, so that the run shows the counter-example as far as it is shrunk. */
const bounded = { interruptAfterTimeLimit: timeout - 10_000, markInterruptAsFailure: true }

/** Runs in flight at a time. Sequential runs mostly wait for Redis. */
const LANES = 8

/** States a law about random values. A law that reads all of Redis needs `lanes` of 1. */
export function property<T>(
  claim: string,
  values: fc.Arbitrary<T>,
  check: (value: T) => Promise<void>,
  numRuns = quarter,
  lanes = LANES,
) {
  test(claim, { timeout }, async () => {
    // After a failure the other lanes stop, and the failed lane shrinks its counter-example alone.
    let failed: number | undefined
    const { seed } = fc.readConfigureGlobal()
    const lane = async (number: number) => {
      let running: Promise<void> | undefined
      const one = async (value: T) => {
        if (failed !== undefined && failed !== number) return
        running = check(value)
        await running.catch((error) => {
          if (failed === undefined) failed = number
          throw error
        })
      }
      const share = Math.floor((numRuns + number) / lanes)
      const parameters = {
        ...bounded,
        numRuns: share,
        ...(seed !== undefined && { seed: seed + number }),
      }
      if (share === 0) return
      // The run that an interrupt has left behind ends before the next test begins: it may have replaced the clock.
      await fc
        .assert(fc.asyncProperty(values, one), parameters)
        .finally(() => running?.catch(() => {}))
    }
    await Promise.all(Array.from({ length: lanes }, (_, number) => lane(number)))
  })
}

export interface Shapes {
  single?: Shape
  mixed?: Shape
  /** The kinds for which the law holds. Defaults to all. */
  of?: readonly Kind[]
}

/** States a law for every algorithm, and for any mix of limits, subjects and requests. */
export function law(
  claim: string,
  check: (schedule: Schedule) => Promise<void>,
  { single, mixed, of = kinds }: Shapes = {},
  numRuns = quarter,
) {
  const draw = (names: readonly Kind[], usual: Shape, shape: Shape = {}) =>
    schedule(names, { ...usual, ...shape })
  for (const name of of) {
    property(`${claim} (${name})`, draw([name], { steps: 20, requests: 2 }, single), check, numRuns)
  }
  const mix = { policies: 4, subjects: 3, requests: 4, ...mixed }
  // Several objects that charge one request need refunds, which have laws of their own (split-laws.ts).
  if (process.env.TEST_STORE === 'durable-objects') mix.subjects = 1
  property(`${claim} (any mix)`, draw(of, mix), check, numRuns)
}

/** The same schedule without changes of the limits. */
export const unchanging = (plan: Schedule): Schedule => ({
  ...plan,
  steps: plan.steps.map((step) => ({ ...step, change: null })),
})

/** The same schedule with one clock for the calendar and for Redis. */
export const inLine = (plan: Schedule): Schedule => ({
  ...plan,
  steps: plan.steps.map((step) => ({ ...step, skew: 0 })),
})

/** The same schedule with a clock that never goes back. */
export const forward = (plan: Schedule): Schedule => ({
  ...plan,
  steps: plan.steps.map((step) => ({ ...step, forward: true })),
})
