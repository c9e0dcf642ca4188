/** The interface between the step `settle` and `sluice/bodies`, which reads the cost of a response in its body. Types only. */
import type { Fallback, PolicyMode } from './decision.ts'
import type { StoreError } from './errors.ts'

/** A limit whose cost is in the body of the response (`cost.usage`). The fields are those of `PolicyLimit`. */
export interface MeteredLimit {
  policy: {
    name: string
    mode: PolicyMode
    onStoreError: Fallback
    deadlineMs: number
    /** The ranges of statuses that count. Undefined if all do. */
    countOnly: [low: number, high: number][] | undefined
    cost: {
      usage: string[] | undefined
      scale: number | undefined
      otherwise: number
      max: number | undefined
      cut: boolean
    }
  }
  /** The units that are charged before the response. */
  cost: number
}

/** A charge. The fields are those of `Charge`. */
export interface MeteredCharge<L> {
  limits: L[]
  charged: Map<L, number> | Promise<Map<L, number>>
  store: {
    decide(
      requests: { mode: 'take'; limits: L[] }[],
      options: { deadlineMs: number; waitUntil: (promise: Promise<unknown>) => void },
    ): Promise<{
      decidedAt: number
      states: { allowed: boolean; retryAfterMs: number | null; decidedAt?: number }[][]
    }>
  }
}

/** The charges of one response. */
export interface Metering<L extends MeteredLimit> {
  /** All charges that depend on the response. The reader adds the units that it takes for a stream (`cost.cut`). */
  charges: MeteredCharge<L>[]
  /** Receives the errors of the store. */
  onStoreError: (error: StoreError) => void
  waitUntil: (promise: Promise<unknown>) => void
  /** Settles all charges. Called once, after the body. `kept` has the units that each limit keeps. */
  end: (kept: Map<L, number>) => void
}

/** Reads the cost of a response while its body passes. */
export interface ResponseMeter {
  /** @returns the response to send, or `undefined` if no charge depends on its body, or the body has no readable cost; `end` is then not called */
  meter<L extends MeteredLimit>(answer: Response, metering: Metering<L>): Response | undefined
}
