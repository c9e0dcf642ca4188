/** Units, except for `window`: ms. All whole numbers, products at most 2^53 / 3. */
export interface QuotaTerms {
  limit: number
  window: number
  burst: number
  align: 'first-request' | 'clock'
  /** For a fixed window by the calendar: this period's start and end, and the end of the next. */
  period?: [start: number, end: number, nextEnd: number] | undefined
}

/** The stored state of one limit. */
export interface State {
  /** When the numbers were right, ms since the epoch. */
  time: number
  numbers: number[]
  /** When a period of the calendar ends. */
  end?: number
}

/** The answer of a limit to a cost. Durations are ms from `now` on. */
export interface LocalOutcome {
  allowed: boolean
  /** The largest cost that would be admitted now. */
  remaining: number
  /** `null` when this cost can never be admitted. */
  retryAfterMs: number | null
  resetAfterMs: number
  nextAfterMs: number
  /** The state after the charge; absent if nothing changes. If present, the numbers above are those after the charge. */
  state?: State
}

/**
 * The semantics of docs/explanation/algorithms.md for one limit, without I/O: charges `cost` units (≥ 0) at `now` to a state. The caller drops a
 * state at its run-out. If the clock was set back, the algorithm uses the state's own time, while waits count from `now`.
 */
export type LocalAlgorithm = (
  now: number,
  terms: QuotaTerms,
  cost: number,
  state?: State,
) => LocalOutcome
