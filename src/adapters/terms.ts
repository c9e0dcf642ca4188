/** The terms of limits of other libraries. */
import type { LimitState } from '../core/base/decision.ts'
import { MAX_MS } from '../core/base/duration.ts'
import { largestQuota, MAX_ENTRIES } from '../core/base/units.ts'
import type { LimitsOptions, LimitTerms } from '../limits/terms.ts'

/** Where an adapter counts. */
export interface AdapterOptions extends Omit<LimitsOptions, 'headers' | 'unconfigured'> {}

/** Terms whose times are whole ms. */
interface ExactTerms extends LimitTerms {
  window: number
  /** The ban of a request over the limit, ms. */
  penalty?: { after: 1; within: number; ban: number; max: number }
}

/**
 * The exact terms of a limit, or the next stricter ones: a limit is rounded down, a duration up. Above 10,000 units the count is that of a
 * sliding window, or of a fixed window if a product would not be exact. Without units each request costs more than there are.
 * @param units the limit in requests: any number. `Infinity` is no limit
 * @param blockMs how long a request over the limit blocks the key. Defaults to 0
 */
export function termsOf(units: number, windowMs: number, blockMs = 0): ExactTerms {
  const limit = Math.max(1, Math.min(Math.floor(units), Number.MAX_SAFE_INTEGER))
  const [window, ban] = [wholeMs(windowMs), wholeMs(blockMs)]
  const algorithm =
    limit <= MAX_ENTRIES
      ? 'sliding-log'
      : limit <= largestQuota('sliding-window', window)
        ? 'sliding-window'
        : 'fixed-window'
  const terms = { algorithm, limit, window, cost: units < 1 ? 2 : 1 } as const
  return blockMs > 0 ? { ...terms, penalty: { after: 1, within: ban, ban, max: ban } } : terms
}

/** Rounds up, without the error of a product: 1.1 × 1000 is 1100.0000000000002. */
export const wholeMs = (ms: number) => Math.min(Math.max(1, Math.ceil(ms - 1e-6)), MAX_MS)

/** The state of a limit after a call, also if the process has counted. */
export const stateOf = (one: { limits: LimitState[]; counted?: LimitState[] | undefined }) =>
  (one.counted ?? one.limits)[0]!

/** Waits are announced in whole seconds, so that no client returns too early. */
export const inSeconds = (ms: number) => Math.ceil(ms / 1000)
