/** Facts about decisions, as the limiter reports them. */
import type { Decision, LimitState } from '../../src/core/base/decision.ts'
import type { DecisionFact, ObservedMatch } from '../../src/core/base/observer.ts'

export const limitState = (change: Partial<LimitState> = {}): LimitState => ({
  policy: 'a',
  mode: 'enforce',
  limit: 10,
  windowMs: 60_000,
  cost: 1,
  allowed: true,
  remaining: 9,
  retryAfterMs: 0,
  resetAfterMs: 60_000,
  nextAfterMs: 60_000,
  ...change,
})

/** The state of a limit that refuses. */
export const refusing = (change: Partial<LimitState> = {}): LimitState =>
  limitState({ allowed: false, remaining: 0, retryAfterMs: 1_000, ...change })

export const matchOf = (
  change: Partial<ObservedMatch['policy']> = {},
  more: Partial<ObservedMatch> = {},
): ObservedMatch => ({
  policy: {
    name: 'a',
    mode: 'enforce',
    algorithm: 'sliding-window',
    burst: 10,
    onStoreError: 'local',
    ...change,
  },
  partitionKey: [['ip', '203.0.113.7']],
  cost: 1,
  ...more,
})

export const admitted: Decision = {
  allowed: true,
  reason: 'within-limit',
  retryAfterMs: 0,
  limits: [limitState()],
}
export const refused: Decision = {
  allowed: false,
  reason: 'limited',
  retryAfterMs: 1_000,
  limits: [refusing()],
}

/** A fact; by default of an admitted request with one policy. */
export const factOf = (change: Partial<DecisionFact> = {}): DecisionFact => ({
  decision: admitted,
  decidedBy: 'store',
  matches: [matchOf()],
  use: { ms: 12, calls: 1, billedCommands: 4 },
  from: {},
  hash: (key) => `hash of ${key[0]![1]}`,
  env: {},
  waitUntil: () => {},
  context: undefined,
  ...change,
})
