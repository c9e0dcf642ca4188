import fc from 'fast-check'
import { expect, test } from 'vitest'
import { memoryParts } from '../../../../site/playground/engine/memory-parts.ts'
import type { Limit, StoreRequest, Terms } from '../../../../src/core/connection/store.ts'
import {
  AHEAD_MS,
  type CountTerms,
  isEqual,
  recordToStore,
  STEP,
} from '../../../../src/stores/durable-objects/ahead.ts'
import { decideList } from '../../../../src/stores/durable-objects/decide.ts'
import type { Record } from '../../../../src/stores/durable-objects/record.ts'

const windowMs = 6000
const algorithms = ['fixed-window', 'sliding-window', 'token-bucket'] as const

const limitOf = (algorithm: Terms['algorithm'], limit: number, cost: number): Limit => ({
  subject: 's',
  cost,
  terms: {
    tag: algorithm,
    algorithm,
    limit,
    windowMs,
    burst: 40,
    align: 'first-request',
    localShare: 1,
  },
})

/** What remains of a limit under a plan, by a record. */
function remaining(record: Record, limit: Limit, now: number): number {
  const parts = { ...memoryParts(), record }
  return decideList(parts, [{ mode: 'peek', limits: [limit] }], now)[0]![0]!.remaining
}

/** Limits of plans that share one count. */
const plans = [20, 40, 200]

const steps = fc.array(
  fc.record({
    waitMs: fc.oneof(
      fc.constant(0),
      fc.integer({ min: 0, max: 400 }),
      fc.integer({ min: 0, max: 9000 }),
    ),
    mode: fc.constantFrom(
      'take' as const,
      'take' as const,
      'take' as const,
      'refund' as const,
      'debt' as const,
    ),
    plan: fc.constantFrom(...plans),
    cost: fc.integer({ min: 1, max: 4 }),
  }),
  { minLength: 1, maxLength: 60 },
)

test.each(algorithms)(
  '%s: The stored count is never less strict than the one in memory, at any later time and under any plan, and by less than a step.',
  (algorithm) => {
    fc.assert(
      fc.property(steps, fc.integer({ min: 0, max: 9000 }), (steps, laterMs) => {
        const parts = memoryParts()
        const counts = new Map<string, CountTerms>()
        let stored: Record = new Map()
        let now = 1_789_000_000_000
        for (const { waitMs, mode, plan, cost } of steps) {
          now += waitMs
          const limit = limitOf(algorithm, plan, cost)
          counts.set(algorithm, limit.terms)
          decideList(parts, [{ mode, limits: [limit] } as StoreRequest], now)
          stored = recordToStore(stored, parts.record, counts, waitMs < 1000) ?? stored
          for (const plan of plans) {
            const peeked = limitOf(algorithm, plan, 0)
            for (const time of [now, now + 1, now + laterMs]) {
              const exact = remaining(parts.record, peeked, time)
              const kept = remaining(stored, peeked, time)
              expect(kept).toBeLessThanOrEqual(exact)
              const flows = algorithm === 'token-bucket' ? (2 * AHEAD_MS * 200) / windowMs : 0
              expect(kept).toBeGreaterThanOrEqual(
                Math.max(0, exact - (STEP - 1) - Math.ceil(flows)),
              )
            }
          }
        }
      }),
      { numRuns: 300 },
    )
  },
)

test('A sparse subject stores its exact count, and a state that nobody charges stays as it is.', () => {
  const parts = memoryParts()
  const limit = limitOf('fixed-window', 40, 1)
  const counts = new Map<string, CountTerms>([['fixed-window', limit.terms]])
  const now = 1_789_000_000_000
  decideList(parts, [{ mode: 'take', limits: [limit] }], now)
  const stored = recordToStore(new Map(), parts.record, counts, false)!
  expect(isEqual(stored.get('fixed-window')!, parts.record.get('fixed-window')!)).toBe(true)
  expect(recordToStore(stored, parts.record, counts, true)).toBeUndefined()
  decideList(parts, [{ mode: 'reset', limits: [limit] }], now)
  expect(recordToStore(stored, parts.record, counts, true)).toEqual(new Map())
})

test('A dense subject stores ten units at once, at most its quota.', () => {
  const parts = memoryParts()
  const limit = limitOf('fixed-window', 15, 1)
  const counts = new Map<string, CountTerms>([['fixed-window', limit.terms]])
  let stored: Record = new Map()
  const writes: number[] = []
  for (let n = 1; n <= 15; n++) {
    decideList(parts, [{ mode: 'take', limits: [limit] }], 1_789_000_000_000)
    const next = recordToStore(stored, parts.record, counts, true)
    if (next) writes.push(next.get('fixed-window')!.numbers[0]!)
    stored = next ?? stored
  }
  expect(writes).toEqual([10, 15])
})
