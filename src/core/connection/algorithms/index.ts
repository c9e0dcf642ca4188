import type { QuotaState } from '../../base/decision.ts'
import type { Limit, Terms } from '../store.ts'
import { type QuotaAlgorithm, type State, withFloor } from './algorithm.ts'
import { fixedWindow } from './fixed-window.ts'
import { slidingLog } from './sliding-log.ts'
import { slidingWindow } from './sliding-window.ts'
import { tokenBucket } from './token-bucket.ts'

export type { QuotaAlgorithm, QuotaTerms, State } from './algorithm.ts'
export { endingIn, resized, withFloor } from './algorithm.ts'
export { windowsAt } from './sliding-window.ts'
export { bucketAt } from './token-bucket.ts'

/** The algorithms by their names in parsed policies. */
export const algorithms = {
  'fixed-window': fixedWindow,
  'sliding-window': slidingWindow,
  'sliding-log': slidingLog,
  'token-bucket': tokenBucket,
} satisfies Record<string, QuotaAlgorithm>

/** Algorithms that features add, by their names. */
export type Algorithms = Readonly<Partial<Record<Terms['algorithm'], QuotaAlgorithm>>>

/**
 * The state of a limit in a reply, by its stored state after the decision. Not for `concurrency` and `distinct`.
 * @param allowed true if the cost fits, or was charged
 * @param stored with the end of its life
 */
export function statedBy(
  { terms, cost, floor = 0 }: Limit,
  now: number,
  allowed: boolean,
  stored?: State,
): QuotaState {
  const algorithm = terms.algorithm as keyof typeof algorithms
  const decide = algorithms[algorithm]
  const smaller = floor ? withFloor(algorithm, terms, floor) : terms
  const { remaining, resetAfterMs, nextAfterMs } = decide(now, smaller, 0, stored)
  const retryAfterMs = allowed ? 0 : decide(now, smaller, cost, stored).retryAfterMs
  // The whole quota is available from the run-out of the state on. Without a state every wait is 0, or there is none.
  const restMs = stored ? stored.end! - now : 0
  const answer: QuotaState = {
    allowed,
    remaining,
    retryAfterMs: retryAfterMs && Math.min(retryAfterMs, restMs),
    resetAfterMs: Math.min(resetAfterMs, restMs),
    nextAfterMs: Math.min(nextAfterMs, restMs),
  }
  return floor
    ? { ...answer, reserved: decide(now, terms, 0, stored).remaining - answer.remaining }
    : answer
}
