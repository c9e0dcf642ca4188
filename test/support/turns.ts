import fc from 'fast-check'
import type { Terms } from '../../src/core/connection/store.ts'
import type { Counting } from './schedules.ts'

/** A schedule of requests that take turns. */
export interface TurnSchedule {
  policies: Omit<Terms, 'localShare'>[]
  steps: TurnStep[]
}

export interface TurnStep {
  /** ms since the step before. */
  wait: number
  /** The cost for each policy. */
  costs: number[]
  /** The longest time to the place, ms. */
  longest: number
  /** Gives the place of this many steps ago up, before this step. 0 gives none up. */
  abandoned: number
}

export const turnStart = 1_789_000_000_000

const policyOf = (algorithm: Counting, index: number) =>
  fc.record({
    tag: fc.constant(`t${index}`),
    algorithm: fc.constant(algorithm),
    limit: fc.integer({ min: 1, max: 6 }),
    windowMs: fc.integer({ min: 1, max: 40 }),
    burst: fc.integer({ min: 1, max: 6 }),
    align: fc.constantFrom('first-request' as const, 'clock' as const),
  })

/** @param back the longest step back of the clock, ms */
export const turnSchedule = (algorithms: Counting[], back = 0): fc.Arbitrary<TurnSchedule> =>
  fc.tuple(...algorithms.map(policyOf)).chain((policies) =>
    fc.record({
      policies: fc.constant(policies),
      steps: fc.array(
        fc.record({
          wait: fc.oneof(
            { weight: 6, arbitrary: fc.integer({ min: 0, max: 4 }) },
            { weight: 2, arbitrary: fc.integer({ min: -back, max: 60 }) },
          ),
          costs: fc.tuple(
            ...policies.map(() =>
              fc.oneof(
                { weight: 4, arbitrary: fc.constant(1) },
                { weight: 1, arbitrary: fc.integer({ min: 0, max: 7 }) },
              ),
            ),
          ),
          longest: fc.oneof(fc.constant(100_000), fc.integer({ min: 0, max: 60 })),
          abandoned: fc.oneof(
            { weight: 5, arbitrary: fc.constant(0) },
            { weight: 1, arbitrary: fc.integer({ min: 1, max: 8 }) },
          ),
        }),
        { minLength: 1, maxLength: 40, size: 'max' },
      ),
    }),
  )
