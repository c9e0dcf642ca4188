/** The terms of a quota, in units; `window` in ms. All are whole numbers, and their products are at most 2^53 / 3. */
export interface QuotaTerms {
  limit: number
  window: number
  burst: number
  align: 'first-request' | 'clock'
  /** The period of a calendar window, and the end of the next period, ms since the epoch. Fixed windows only. */
  period?: [start: number, end: number, nextEnd: number] | undefined
}

/** The stored state of one limit. */
export interface State {
  /** The time of the numbers, ms since the epoch. */
  time: number
  /** Each algorithm documents its own numbers. */
  numbers: number[]
  /** The end of a calendar period, ms since the epoch. */
  end?: number
}

/** The decision of one limit. Durations are in ms from `now`. */
export interface LocalOutcome {
  allowed: boolean
  /** The largest cost that the limit would admit now. */
  remaining: number
  /** `null` if the limit can never admit this cost. */
  retryAfterMs: number | null
  resetAfterMs: number
  nextAfterMs: number
  /** The state after the charge. Absent if the state does not change. The fields above are also those after the charge. */
  state?: State
}

/**
 * Charges `cost` units (≥ 0) at `now` to the state of one limit, as docs/explanation/algorithms.md describes. No I/O.
 *
 * The caller drops a state once it expires (`now + resetAfterMs`). If the clock was set back, the algorithm uses the time of the state,
 * while waits count from `now`.
 */
export type LocalAlgorithm = (
  now: number,
  terms: QuotaTerms,
  cost: number,
  state?: State,
) => LocalOutcome
