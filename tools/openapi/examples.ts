/** Example bodies. A test checks each against its schema. */
import type { Decision, LimitState } from '../../src/core/base/decision.ts'

const request = { method: 'POST', url: 'https://api.example.com/login', ip: '203.0.113.7' }

const limit: LimitState = {
  policy: 'per-user',
  mode: 'enforce',
  allowed: true,
  limit: 100,
  windowMs: 60_000,
  cost: 1,
  remaining: 99,
  retryAfterMs: 0,
  resetAfterMs: 60_000,
  nextAfterMs: 60_000,
}

const allowed: Decision = {
  allowed: true,
  reason: 'within-limit',
  retryAfterMs: 0,
  limits: [limit],
  decidedAt: 1_795_176_000_400,
}

export const examples = {
  ask: { policy: 'per-user', key: 'user-7', cost: 1 },
  asks: [{ policy: 'per-user', key: ['user-7'], mode: 'peek' }, { request }],
  allowed,
  refund: { policy: 'per-user', key: 'user-7', cost: 1, decidedAt: 1_795_176_000_400 },
  settlement: { policy: 'per-user', key: 'user-7', used: 0, decision: allowed },
  target: { key: 'user-7' },
  ban: { key: 'user-7', for: '1h' },
  override: { limit: 5000, for: '30d' },
  try: { request },
}
