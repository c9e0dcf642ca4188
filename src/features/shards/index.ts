/** `sluice/shards`: several databases, each with a part of the clients, and Redis Cluster. */
import * as v from 'valibot'
import { ConfigError } from '../../core/base/errors.ts'
import { checked } from '../../core/config/schema/checked.ts'
import { shortName } from '../../core/config/schema/shapes.ts'
import type { Feature } from '../../core/feature.ts'
import { bySlot, createCluster } from './cluster.ts'
import { createShards } from './split-store.ts'

const schema = v.object({
  shards: v.pipe(
    v.array(shortName, 'a list of names'),
    v.minLength(1, 'at least one name'),
    v.maxLength(64, 'at most 64 names'),
    v.checkItems(
      (name, index, names) => names.indexOf(name) === index,
      'a name that no other shard has',
    ),
  ),
})

/**
 * Distributes the clients over several databases.
 * @param names 1 to 64 different names of 1 to 32 lower-case letters, digits or `-`. The variables of `eu-1` are
 * `UPSTASH_REDIS_REST_URL_EU_1` and `UPSTASH_REDIS_REST_TOKEN_EU_1`. The shard of a client depends only on the names.
 * @throws {ConfigError} immediately, if a name is invalid
 * @example
 * defineConfig({
 *   policies: [{ name: 'per-ip', limit: 100, window: '1m' }],
 *   use: [shards(['eu-1', 'eu-2'])],
 * })
 */
export function shards(names: readonly string[]): Feature {
  const { output, problems } = checked(schema, { shards: names }, 'shards')
  if (problems) throw new ConfigError(problems)
  const databases = output.shards
  return {
    name: 'shards',
    databases,
    compile: () => ({
      spread: (stores, onRefund) =>
        createShards(
          databases.map((name, index) => ({ name, store: stores[index]! })),
          { onRefund },
        ),
    }),
  }
}

/**
 * For a Redis Cluster behind one REST endpoint. The Worker splits batches and requests by the hash slots of their keys. Not together with
 * `shards`.
 * @example
 * defineConfig({
 *   policies: [{ name: 'per-ip', limit: 100, window: '1m' }],
 *   use: [cluster()],
 * })
 */
export const cluster = (): Feature => ({
  name: 'cluster',
  excludes: 'shards',
  compile: () => ({
    wrap: bySlot,
    spread: ([store], onRefund) => createCluster(store!, { onRefund }),
  }),
})
