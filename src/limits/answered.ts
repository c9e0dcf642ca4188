import type { Decision, LimitState } from '../core/base/decision.ts'
import { binds } from '../core/decide/limit.ts'

/** A decision with the numbers of the limit that binds. */
export class Answered implements Decision {
  declare readonly allowed: boolean
  declare readonly reason: Decision['reason']
  declare readonly retryAfterMs: number | null
  declare readonly limits: LimitState[]
  declare readonly decidedAt?: number
  declare readonly slot?: string
  readonly limit: number
  readonly remaining: number
  readonly resetAfterMs: number

  /** @param limit the limit of a decision without a state. @param states those that were counted. Defaults to those of the decision */
  constructor(decision: Decision, limit: () => number, states = decision.limits) {
    Object.assign(this, decision)
    const binding = states.reduce<LimitState | undefined>(
      (one, other) => (one && binds(one, other) ? one : other),
      undefined,
    )
    this.limit = binding?.limit ?? limit()
    this.remaining = binding?.remaining ?? 0
    this.resetAfterMs = binding?.resetAfterMs ?? 0
  }
}
