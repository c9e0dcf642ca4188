/** Facts about decisions, as the limiter reports them. */
import type { Decision, LimitState } from '../../src/core/base/decision.ts'
import { parseConfig } from '../../src/core/config/parse.ts'
import type { DecisionFact } from '../../src/core/decide/observer.ts'
import type { Match } from '../../src/core/program/match.ts'
import { defaultFields } from '../../src/features/defaults.ts'

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

const [policy] = parseConfig(
  { policies: [{ name: 'a', limit: 10, window: '1m' }] },
  defaultFields,
).policies

export const matchOf = (
  change: Partial<Match['terms']> = {},
  more: Partial<Match> = {},
): Match => ({
  terms: { ...policy!, ...change },
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
