/** What an algorithm goes by. Units, except for `window`: milliseconds. All whole, products at most 2^53 / 3. */
export interface QuotaTerms {
  limit: number
  window: number
  burst: number
  align: 'first-request' | 'clock'
  /** For a fixed window by the calendar: this period's start and end, and the end of the next. */
  period?: [start: number, end: number, nextEnd: number] | undefined
}

/** What is kept of one limit: when its numbers were right (ms since the epoch), and the algorithm's numbers. */
export interface State {
  time: number
  numbers: number[]
  /** When a period of the calendar ends. */
  end?: number
}

/** How a limit answers a cost. Durations are milliseconds from `now` on. */
export interface Outcome {
  allowed: boolean
  /** The largest cost that would be admitted now. */
  remaining: number
  /** `null` when this cost can never be admitted. */
  retryAfterMs: number | null
  resetAfterMs: number
  nextAfterMs: number
  /** What to keep if the cost is charged; absent when nothing changes. The numbers above then tell how it stands after the charge. */
  state?: State
}

/**
 * The semantics of docs/algorithms.md for one limit, without I/O: how `cost` units (≥ 0) fare at `now` over a state.
 * The caller drops a state at its run-out. A clock that ran back is taken to stand at the state's own time, while waits count from `now`.
 */
export type Algorithm = (now: number, terms: QuotaTerms, cost: number, state?: State) => Outcome
