/** Schemas of the answers of the decision API, for the description only. `same` checks them against the types of the Worker. */
import * as v from 'valibot'
import type { Trial } from '../../src/api/explain.ts'
import type { PolicyReport } from '../../src/api/policies.ts'
import type { Problem } from '../../src/client/error.ts'
import type { Decision, LimitState, LimitStatus } from '../../src/core/base/decision.ts'
import type { DatabaseReport } from '../../src/core/decide/operate.ts'
import type { BanPage } from '../../src/features/bans/endpoint.ts'
import { deciders, outcomes } from '../../src/features/observe/event.ts'
import type { Stats } from '../../src/features/observe/report.ts'
import type { OverrideList } from '../../src/features/overrides/endpoints.ts'

/** Compiles only if two types are assignable to each other. */
type Same<A, B> = [A, B] extends [B, A] ? true : false
const same = <_T extends true>() => {}

const storeErrors = [
  'not-configured',
  'timeout',
  'unreachable',
  'unauthorized',
  'over-quota',
  'database-full',
  'bad-reply',
  'redis-error',
  'circuit-open',
  'idempotency-conflict',
  'internal',
] as const

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
  unit: v.exactOptional(v.picklist(['concurrent-requests', 'content-bytes'])),
  windowMs: described(ms, 'The window, in milliseconds.'),
  cost: described(units, 'The units that the request costs.'),
  remaining: described(units, 'The largest cost that is allowed now.'),
  reserved: v.exactOptional(
    described(units, 'The free units that the request must leave free. Absent without a reserve.'),
  ),
  retryAfterMs: described(
    v.nullable(ms),
    'Milliseconds until the same request is allowed. Null if it never is. An upper bound for concurrent requests.',
  ),
  resetAfterMs: described(ms, 'Milliseconds until the whole quota is available.'),
  nextAfterMs: described(ms, 'Milliseconds until `remaining` grows.'),
  bannedForMs: v.exactOptional(described(ms, 'Milliseconds until the ban of this key ends.')),
  overriddenForMs: v.exactOptional(
    described(ms, 'Milliseconds until the limit that an operator has set for this key ends.'),
  ),
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
      'The time of the decision, in milliseconds since the epoch. Of several objects or hash slots, the earliest time. Pass it to refund.',
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

export const overrideList = v.object({
  overrides: v.array(
    v.object({
      subject: described(v.string(), 'The client, as GET /stats names it by default.'),
      limit: units,
      overriddenForMs: described(ms, 'Milliseconds until the limit ends.'),
    }),
  ),
})
same<Same<v.InferOutput<typeof overrideList>, OverrideList>>()

export const banPage = v.object({
  bans: described(
    v.array(
      v.object({
        subject: described(v.string(), 'The client, by its name in Redis.'),
        bannedForMs: described(ms, 'Milliseconds until the ban ends.'),
      }),
    ),
    'At most 100, the ban that ends last first.',
  ),
  total: described(v.number(), 'The number of bans on all pages.'),
  next: v.exactOptional(
    described(v.string(), 'The parameter `after` of the next page. Absent on the last page.'),
  ),
})
same<Same<v.InferOutput<typeof banPage>, BanPage>>()

const onStoreError = ['allow', 'deny', 'local'] as const
export const policyReport = v.object({
  name: v.string(),
  algorithm: v.picklist([
    'fixed-window',
    'sliding-window',
    'sliding-log',
    'concurrency',
    'distinct',
    'token-bucket',
  ]),
  limit: units,
  windowMs: ms,
  burst: units,
  mode: v.picklist(['enforce', 'shadow']),
  key: described(v.array(v.string()), 'The parts of the key.'),
  match: v.exactOptional(
    described(
      v.record(v.string(), v.unknown()),
      'The requests that the policy applies to, as in the configuration, with lists for single values. Absent for a policy that applies to all.',
    ),
  ),
  onStoreError: described(v.picklist(onStoreError), 'The fallback if the store gives no answer.'),
  bans: described(v.boolean(), 'Whether keys of this policy can be banned.'),
  overrides: v.exactOptional(
    described(v.literal(true), 'Present if operators may set the limit of single keys.'),
  ),
  decidedBy: described(
    v.picklist(['store', ...onStoreError]),
    'The store, or the fallback that decides now.',
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
    floor: v.exactOptional(
      described(units, 'The units that the request must leave free. Absent without a reserve.'),
    ),
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

const series = v.array(
  v.object({
    policy: described(v.string(), 'The name of the policy. Empty if none applies.'),
    outcome: v.picklist(outcomes),
    decidedBy: v.picklist(deciders),
    decisions: described(v.number(), 'The number of decisions.'),
    units: described(v.number(), 'The units that the requests cost.'),
    near: described(v.number(), 'Decisions after which at least 80 % of the quota was used.'),
  }),
)
const span = { from: ms, to: ms }
const counters = v.record(v.string(), v.number())

export const stats = v.object({
  v: v.literal(1),
  now: described(ms, 'The time of this answer, in ms since the epoch.'),
  total: described(
    v.object({
      ...span,
      series,
      offenders: described(
        v.array(
          v.object({
            policy: v.string(),
            subject: described(v.string(), 'The label of the client, by `observe.subjects`.'),
            refusals: described(v.number(), 'The upper bound of the number of refusals.'),
            error: described(v.number(), 'The maximum overestimate of `refusals`.'),
          }),
        ),
        'The clients with the most refusals.',
      ),
      store: v.object({
        calls: described(v.number(), 'HTTP requests to the store.'),
        billedCommands: v.number(),
        operators: v.exactOptional(
          described(
            v.object({ calls: v.number(), billedCommands: v.number() }),
            'The part that charges no request: operations, lists and checks. Absent without any.',
          ),
        ),
        errors: described(counters, 'Failed calls by error code.'),
        latency: v.object({
          bounds: described(v.array(v.number()), 'The upper bounds of the buckets, in ms.'),
          counts: described(
            v.array(v.number()),
            'The calls in each bucket, not cumulative. The last bucket has no bound.',
          ),
          sum: described(v.number(), 'The sum of all durations, in ms.'),
        }),
      }),
    }),
    'The counts since `from`.',
  ),
  slots: described(v.array(v.object({ ...span, series })), 'The last 10 minutes in slots of 10 s.'),
  circuit: described(
    v.picklist(['open', 'closed']),
    'The circuit breaker of the isolate that answers. While it is open, `onStoreError` decides.',
  ),
  openSince: v.exactOptional(
    described(v.number(), 'When the circuit opened. Absent while it is closed.'),
  ),
  failure: v.exactOptional(
    described(
      v.picklist(storeErrors),
      'Why the latest call failed. Absent while the circuit is closed.',
    ),
  ),
  answeredAt: v.exactOptional(
    described(
      v.number(),
      'When the latest answer in time of the database came. Absent before the first.',
    ),
  ),
  lastMinute: described(
    v.object({ decisions: v.number(), fallbacks: v.number() }),
    'The decisions of the last 60 s, and those of them by `onStoreError`.',
  ),
  fallbacks: described(v.number(), 'Decisions by `onStoreError`.'),
  dropped: described(counters, 'Lost reports by sink.'),
})
same<Same<v.InferOutput<typeof stats>, Stats>>()

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
