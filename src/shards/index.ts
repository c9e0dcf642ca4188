/** `sluice/shards`: several databases, each with a part of the clients, moves of clients between them, and Redis Cluster. */
import { ConfigError } from '../base/errors.ts'
import type { Cluster, Shards } from '../base/several-stores.ts'
import { checked } from '../config/schema/checked.ts'
import type { Store } from '../store/store.ts'
import type { UpstashStore } from '../store/upstash/upstash.ts'
import { bySlot, createCluster } from './cluster.ts'
import { guardedScript } from './move/guarded-script.ts'
import { createMovingShards } from './move/store.ts'
import { type ShardsOptions, schema } from './options.ts'
import { createShards } from './split-store.ts'

export type { Cluster, Shards } from '../base/several-stores.ts'
export type { ShardsOptions } from './options.ts'

/**
 * Makes the field `shards` of a configuration: several databases, each with a part of the clients.
 * @param names 1 to 64 different names of 1 to 32 lower-case letters, digits or `-`. The variables of `eu-1` are
 * `UPSTASH_REDIS_REST_URL_EU_1` and `UPSTASH_REDIS_REST_TOKEN_EU_1`. The shard of a client depends only on the names.
 * @throws {ConfigError} immediately, if a name or an option is invalid
 * @example
 * defineConfig({
 *   shards: shards(['eu-1', 'eu-2']),
 *   policies: [{ name: 'per-ip', limit: 100, window: '1m' }],
 * })
 */
export function shards(names: readonly string[], options: ShardsOptions = {}): Shards {
  const { output, problems } = checked(schema, { ...options, shards: names }, 'shards')
  if (problems) throw new ConfigError(problems)
  const { shards: to, moveFrom: from } = output
  const shards: Shards<Store> = {
    names: to,
    moveFrom: from,
    databases: [...new Set([...to, ...(from ?? [])])],
    createStore: (parts) =>
      from
        ? createMovingShards({ from, to }, parts)
        : createShards(parts.databases, { onRefund: parts.onRefund }),
    scriptFor: (name, namespace) =>
      from?.includes(name) ? guardedScript(name, { from, to }, namespace) : undefined,
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
