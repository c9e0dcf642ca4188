/** The interface between the limiter and `sluice/shards`. A Worker that does not import `sluice/shards` has none of its code. */
import type { StoreError } from './errors.ts'

/** The error of a call to an old shard for a key that has moved. Nothing is charged. */
export const MOVED = 'ERR sluice: key moved'

/** The script of an old shard, which refuses calls for keys that have moved. */
export interface GuardedScript {
  script: string
  scriptSha: string
  /** Adds what the guard reads to KEYS and ARGV of a call. */
  guard(call: { keys: string[]; args: string[] }): void
}

/** One of several databases, with its stack of layers. */
export interface NamedDatabase<Store> {
  name: string
  url: string | undefined
  token: string | undefined
  store: Store
  /** True if the circuit breaker is open. */
  isOpen: () => boolean
}

/** The parts of the limiter that a store of several databases uses. */
export interface SeveralStoresParts<Store> {
  /** The databases, in the order of `Shards.databases`. */
  databases: NamedDatabase<Store>[]
  namespace: string | undefined
  /** Called after the refund of a request that another database has refused, with the error if the refund failed. */
  onRefund: (subjects: string[], error?: StoreError) => void
}

/** The result of `cluster()`. `Store` and `UpstashStore` are interfaces of the folder `store`. */
export interface Cluster<Store = unknown, UpstashStore = unknown> {
  /** The innermost layer: sends the lists of each slot in calls of their own. */
  bySlot(upstash: UpstashStore): Store
  /** The outermost layer: splits requests with limits in several slots. */
  createStore(store: Store, onRefund: SeveralStoresParts<Store>['onRefund']): Store
}

/** The result of `shards()`. `Store` is the interface of the folder `store`, which this folder does not import. */
export interface Shards<Store = unknown> {
  /** The names of the shards. */
  readonly names: readonly string[]
  /** The names of the old shards, while clients move. */
  readonly moveFrom: readonly string[] | undefined
  /** All names: first those of the shards, then those of the old ones. */
  readonly databases: readonly string[]
  /** Creates the store in front of the databases. */
  createStore(parts: SeveralStoresParts<Store>): Store
  /** The script of a database, if it is not the usual one. */
  scriptFor(name: string, namespace: string | undefined): GuardedScript | undefined
}
