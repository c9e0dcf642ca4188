/** `sluice/shards`: several databases, each with a part of the clients, and Redis Cluster. */
import * as v from 'valibot'
import { ConfigError } from '../../core/base/errors.ts'
import type { Cluster, Shards } from '../../core/base/several-stores.ts'
import { checked } from '../../core/config/schema/checked.ts'
import { shortName } from '../../core/config/schema/shapes.ts'
import type { Store } from '../../core/connection/store.ts'
import type { UpstashStore } from '../../core/connection/upstash/upstash.ts'
import { bySlot, createCluster } from './cluster.ts'
import { createShards } from './split-store.ts'

export type { Cluster, Shards } from '../../core/base/several-stores.ts'

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
 * Makes the field `shards` of a configuration: several databases, each with a part of the clients.
 * @param names 1 to 64 different names of 1 to 32 lower-case letters, digits or `-`. The variables of `eu-1` are
 * `UPSTASH_REDIS_REST_URL_EU_1` and `UPSTASH_REDIS_REST_TOKEN_EU_1`. The shard of a client depends only on the names.
 * @throws {ConfigError} immediately, if a name is invalid
 * @example
 * defineConfig({
 *   shards: shards(['eu-1', 'eu-2']),
 *   policies: [{ name: 'per-ip', limit: 100, window: '1m' }],
 * })
 */
export function shards(names: readonly string[]): Shards {
  const { output, problems } = checked(schema, { shards: names }, 'shards')
  if (problems) throw new ConfigError(problems)
  const shards: Shards<Store> = {
    names: output.shards,
    createSharded: (stores, onRefund) =>
      createShards(
        output.shards.map((name, index) => ({ name, store: stores[index]! })),
        { onRefund },
      ),
  }
  return shards as Shards
}

/**
 * Makes the field `cluster` of a configuration, for a Redis Cluster behind one REST endpoint. The Worker splits batches and requests by the
 * hash slots of their keys.
 * @example
 * defineConfig({
 *   cluster: cluster(),
 *   policies: [{ name: 'per-ip', limit: 100, window: '1m' }],
 * })
 */
export function cluster(): Cluster {
  const cluster: Cluster<Store, UpstashStore> = {
    bySlot,
    createStore: (store, onRefund) => createCluster(store, { onRefund }),
  }
  return cluster as Cluster
}
