import type { Decision, LimitState } from '../../src/core/base/decision.ts'
import { limitState } from './facts.ts'

/** The limit state of a policy with 10 requests a minute after its first request. `change` overrides fields. */
export const state = (change: Partial<LimitState> = {}) =>
  limitState({ nextAfterMs: 6_000, ...change })

export const allowed = (...limits: LimitState[]): Decision => ({
  allowed: true,
  reason: 'within-limit',
  retryAfterMs: 0,
  limits,
})

export const refused = (retryAfterMs: number | null, ...limits: LimitState[]): Decision => ({
  allowed: false,
  reason: 'limited',
  retryAfterMs,
  limits,
})
