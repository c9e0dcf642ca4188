import type { Decision, LimitState } from '../../src/base/decision.ts'

/** How a policy of ten a minute stands after its first request; `change` says what is different. */
export const state = (change: Partial<LimitState> = {}): LimitState => ({
  policy: 'a',
  mode: 'enforce',
  allowed: true,
  limit: 10,
  windowMs: 60_000,
  cost: 1,
  remaining: 9,
  retryAfterMs: 0,
  resetAfterMs: 60_000,
  nextAfterMs: 6_000,
  ...change,
})

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
