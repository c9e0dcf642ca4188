/** What the decision API answers, as schemas. The Worker has no use for them: it makes these values, and their types are checked here. */
import * as v from 'valibot'
import type { Trial } from '../../src/api/explain.ts'
import type { PolicyReport } from '../../src/api/policies.ts'
import type { Decision, LimitState, LimitStatus } from '../../src/base/decision.ts'
import type { Problem } from '../../src/client/error.ts'
import type { DatabaseReport } from '../../src/limiter/operate.ts'

/** Compiles only where each of two types can stand for the other. */
type Same<A, B> = [A, B] extends [B, A] ? true : false
const same = <_T extends true>() => {}

const ms = v.pipe(v.number(), v.integer())
const units = v.pipe(v.number(), v.integer())
const told = <S extends v.GenericSchema>(schema: S, description: string) =>
  v.pipe(schema, v.description(description))

const lacking = {
  missing: v.exactOptional(v.string()),
  unreadable: v.exactOptional(v.string()),
  unverified: v.exactOptional(v.string()),
}
const denied = v.exactOptional(v.object({ by: v.string(), ...lacking }))

export const limitState = v.object({
  policy: v.string(),
  mode: v.picklist(['enforce', 'shadow']),
  allowed: told(v.boolean(), 'of this policy alone'),
  limit: units,
  unit: v.exactOptional(v.literal('concurrent-requests')),
  windowMs: ms,
  cost: units,
  remaining: told(units, 'the largest cost that passes now'),
  retryAfterMs: told(v.nullable(ms), 'null: never; of concurrent requests the longest possible'),
  resetAfterMs: told(ms, 'until all is there'),
  nextAfterMs: told(ms, 'until remaining grows'),
  bannedForMs: v.exactOptional(ms),
  decidedAt: v.exactOptional(
    told(ms, 'its own time, where not all limits have the same; for refund'),
  ),
})
same<Same<v.InferOutput<typeof limitState>, LimitState>>()

export const decision = v.object({
  allowed: v.boolean(),
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
    told(v.picklist(['allow', 'deny', 'local']), 'who answered for the store'),
  ),
  denied,
  retryAfterMs: told(
    v.nullable(ms),
    'null: never, or unknown; the longest possible where concurrent requests are limited',
  ),
  limits: v.array(limitState),
  decidedAt: v.exactOptional(
    told(ms, 'ms since the epoch, of several databases the earliest; for refund'),
  ),
  slot: v.exactOptional(told(v.string(), 'for refund')),
})
same<Same<v.InferOutput<typeof decision>, Decision>>()

export const limitStatus = v.object({ decidedAt: v.exactOptional(ms), limits: v.array(limitState) })
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
  key: v.array(v.string()),
  onStoreError: v.picklist(onStoreError),
  bans: v.boolean(),
  decidedBy: told(
    v.picklist(['store', ...onStoreError]),
    'of several databases: for the keys of those that fail',
  ),
})
same<Same<v.InferOutput<typeof policyReport>, PolicyReport>>()

export const storeReport = v.object({
  status: v.picklist(['ok', 'failing']),
  code: v.exactOptional(v.string()),
  roundTripMs: v.exactOptional(ms),
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
      told(v.array(keyValues), 'further quotas charged, of other readings of the path'),
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

/** RFC 9457; with members of its own, so that those of a kind of problem need no names here. */
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
