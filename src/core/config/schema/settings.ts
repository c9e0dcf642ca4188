/** The fields of a configuration that the engine reads: where and how limits are counted. */
import * as v from 'valibot'
import type { StoreClient } from '../../base/commands.ts'
import type { FeatureDeclaration } from '../feature.ts'
import { flag, type Output, oneOf, pattern, timeout } from './shapes.ts'

/** The results of functions of other entries of the package, each known by a member. */
const client = v.custom<StoreClient>(
  (input) => /^(function|object)$/.test(typeof Object(input).connect),
  "the result of upstash() from 'sluice/upstash', of redis() from 'sluice/redis', or of durableObjects() from 'sluice/durable-objects'",
)
const feature = v.custom<FeatureDeclaration>(
  (input) => typeof Object(input).compile === 'function',
  ({ input }) =>
    typeof input === 'function' && input.name
      ? `a feature: write ${input.name}()`
      : "a feature, such as observe() from 'sluice/features'",
)

export const settingFields = () => ({
  /** Longest duration of a decision. After it `onStoreError` of the policies answers. Less than 25 days. Defaults to `'300ms'`. */
  deadline: v.optional(timeout, 300),
  /**
   * The clock of decisions: `'store'` for the clock of Redis, or `'edge'` for the clock of the Worker. `'edge'` saves one billed command
   * per decision, and makes limits inexact by the differences between clocks (docs/explanation/guarantees.md). Defaults to `'store'`.
   */
  clock: v.optional(oneOf('store', 'edge'), 'store'),
  /** Lets an isolate repeat a refusal without a call to Redis, while the answer cannot have changed. Defaults to true. */
  denialCache: v.optional(flag, true),
  /** Lets an isolate send concurrent decisions to Redis in one call. Defaults to true. */
  batching: v.optional(flag, true),
  /**
   * What counts: the client that sends the commands to Redis, which is the result of `upstash()` from `sluice/upstash` or of `redis()` from
   * `sluice/redis`, or Durable Objects instead of Redis, the result of `durableObjects()` from `sluice/durable-objects`. Defaults to HTTP
   * requests to `UPSTASH_REDIS_REST_URL` with `UPSTASH_REDIS_REST_TOKEN`, and on Node, Bun and Deno without these to the Redis of `REDIS_URL`.
   */
  store: v.optional(client),
  /**
   * What happens without a database, because its variables are missing or invalid. `'error'` answers each request with 500 and names the
   * variable; `sluice/node` fails when it starts. `'local'` lets each isolate count by itself, for previews. Defaults to `'error'`.
   */
  unconfigured: v.optional(oneOf('error', 'local'), 'error'),
  /**
   * A part of every key in Redis: 1 to 32 lower-case letters, digits or `-`. Applications on one database, such as staging and production, need
   * different ones; otherwise their policies of the same name share counters. A change resets all quotas. Defaults to none.
   */
  namespace: v.optional(pattern('1 to 32 lower-case letters, digits and "-"', /^[a-z0-9-]{1,32}$/)),
  /**
   * Features with parameters, such as `observe({ to: 'log' })` from `sluice/features`, each at most once. A feature without parameters is on:
   * its field is enough. Defaults to none.
   */
  use: v.optional(v.array(feature, 'a list of features'), []),
})

export type Settings = Output<ReturnType<typeof settingFields>>
