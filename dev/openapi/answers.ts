/** Schemas of the answers of the decision API, for the description only. `same` checks them against the types of the Worker. */
import * as v from 'valibot'
import type { Trial } from '../../src/api/explain.ts'
import type { PolicyReport } from '../../src/api/policies.ts'
import type { Decision, LimitState, LimitStatus } from '../../src/base/decision.ts'
import type { Problem } from '../../src/client/error.ts'
import type { DatabaseReport } from '../../src/limiter/operate.ts'

/** Compiles only if two types are assignable to each other. */
type Same<A, B> = [A, B] extends [B, A] ? true : false
const same = <_T extends true>() => {}

const ms = v.pipe(v.number(), v.integer())
const units = v.pipe(v.number(), v.integer())
const described = <S extends v.GenericSchema>(schema: S, description: string) =>
  v.pipe(schema, v.description(description))

const lacking = {
  missing: v.exactOptional(described(v.string(), 'The key part that the request lacks.')),
  unreadable: v.exactOptional(
    described(v.string(), 'The key part that has no single readable value.'),
  ),
  unverified: v.exactOptional(
    described(v.string(), 'The key part whose credential could not be verified.'),
  ),
}
const denied = v.exactOptional(
  v.object({
    by: described(v.string(), 'The list entry or the policy that denied the request.'),
    ...lacking,
  }),
)

export const limitState = v.object({
  policy: described(v.string(), 'The name of the policy.'),
  mode: v.picklist(['enforce', 'shadow']),
  allowed: described(v.boolean(), 'Whether this policy alone allows the request.'),
  limit: described(units, 'The size of the quota.'),
  unit: v.exactOptional(v.literal('concurrent-requests')),
  windowMs: described(ms, 'The window, in milliseconds.'),
  cost: described(units, 'The units that the request costs.'),
  remaining: described(units, 'The largest cost that is allowed now.'),
  retryAfterMs: described(
    v.nullable(ms),
    'Milliseconds until the same request is allowed. Null if it never is. An upper bound for concurrent requests.',
  ),
  resetAfterMs: described(ms, 'Milliseconds until the whole quota is available.'),
  nextAfterMs: described(ms, 'Milliseconds until `remaining` grows.'),
  bannedForMs: v.exactOptional(described(ms, 'Milliseconds until the ban of this key ends.')),
  decidedAt: v.exactOptional(
    described(
      ms,
      'The time of the decision on this limit, if the limits of the decision have different times. Pass it to refund.',
    ),
  ),
})
same<Same<v.InferOutput<typeof limitState>, LimitState>>()

export const decision = v.object({
  allowed: described(v.boolean(), 'Whether the request is allowed.'),
  reason: v.picklist([
    'within-limit',
    'limited',
    'no-policy',
    'denied',
    'banned',
    'shielded',
    'store-error',
  ]),
  fallback: v.exactOptional(
    described(
      v.picklist(['allow', 'deny', 'local']),
      'Present if the store gave no answer: the fallback that decided instead.',
    ),
  ),
  denied,
  retryAfterMs: described(
    v.nullable(ms),
    'Milliseconds until the same request is allowed. Null if it never is, or if the time is unknown. An upper bound for concurrent requests.',
  ),
  limits: described(v.array(limitState), 'The state of each limit that applies.'),
  decidedAt: v.exactOptional(
    described(
      ms,
      'The time of the decision, in milliseconds since the epoch. With several databases, the earliest time. Pass it to refund.',
    ),
  ),
  slot: v.exactOptional(
    described(v.string(), 'The id of the slots that the request holds. Pass it to refund.'),
  ),
})
same<Same<v.InferOutput<typeof decision>, Decision>>()

export const limitStatus = v.object({
  decidedAt: v.exactOptional(described(ms, 'The time of the status, in ms since the epoch.')),
  limits: v.array(limitState),
})
same<Same<v.InferOutput<typeof limitStatus>, LimitStatus>>()

const onStoreError = ['allow', 'deny', 'local'] as const
export const policyReport = v.object({
  name: v.string(),
  algorithm: v.picklist([
    'fixed-window',
    'sliding-window',
    'sliding-log',
    'concurrency',
    'token-bucket',
  ]),
  limit: units,
  windowMs: ms,
  burst: units,
  mode: v.picklist(['enforce', 'shadow']),
  key: described(v.array(v.string()), 'The parts of the key.'),
  onStoreError: described(v.picklist(onStoreError), 'The fallback if the store gives no answer.'),
  bans: described(v.boolean(), 'Whether keys of this policy can be banned.'),
  decidedBy: described(
    v.picklist(['store', ...onStoreError]),
    'The store, or the fallback that decides now. With several databases, the fallback for the keys of those that fail.',
  ),
})
same<Same<v.InferOutput<typeof policyReport>, PolicyReport>>()

export const storeReport = v.object({
  status: v.picklist(['ok', 'failing']),
  code: v.exactOptional(v.string()),
  roundTripMs: v.exactOptional(
    described(ms, 'The time of one call to the database, in milliseconds.'),
  ),
})
same<Same<v.InferOutput<typeof storeReport>, Omit<DatabaseReport, 'name'>>>()

const keyValues = v.array(
  v.object({
    part: v.string(),
    value: v.nullable(v.string()),
    fault: v.exactOptional(v.picklist(['unreadable', 'unverified'])),
  }),
)

export const trial = v.variant('met', [
  v.object({
    policy: v.string(),
    denied,
    met: v.literal(true),
    mode: v.picklist(['enforce', 'shadow']),
    key: keyValues,
    otherKeys: v.exactOptional(
      described(
        v.array(keyValues),
        'Keys of further quotas that are charged, because origins may read the path in several ways.',
      ),
    ),
    limit: units,
    windowMs: ms,
    cost: units,
  }),
  v.object({
    policy: v.string(),
    denied,
    met: v.literal(false),
    unmet: v.picklist(['match', 'allow', 'key', 'deny']),
    field: v.exactOptional(v.string()),
    entry: v.exactOptional(v.string()),
    ...lacking,
  }),
])
same<Same<v.InferOutput<typeof trial>, Trial>>()

/** A problem document (RFC 9457). Loose, because each problem type may have more members. */
export const problem = v.looseObject({
  type: v.string(),
  status: v.pipe(v.number(), v.integer()),
  title: v.string(),
  detail: v.exactOptional(v.string()),
  errors: v.exactOptional(
    v.array(v.object({ path: v.string(), expected: v.string(), got: v.string() })),
  ),
})
same<Same<v.InferOutput<typeof problem>, Problem>>()
