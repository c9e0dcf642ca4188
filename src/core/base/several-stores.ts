/** The interface between the limiter and `sluice/shards`. A Worker that does not import `sluice/shards` has none of its code. */
import type { StoreError } from './errors.ts'

/** Called after the refund of a request that another shard has refused, with the error if the refund failed. */
export type OnRefund = (subjects: string[], error?: StoreError) => void

/** The result of `cluster()`. `Store` and `UpstashStore` are interfaces of the folder `store`. */
export interface Cluster<Store = unknown, UpstashStore = unknown> {
  /** The innermost layer: sends the lists of each slot in calls of their own. */
  bySlot(upstash: UpstashStore): Store
  /** The outermost layer: splits requests with limits in several slots. */
  createStore(store: Store, onRefund: OnRefund): Store
}

/** The result of `shards()`. `Store` is the interface of the folder `store`, which this folder does not import. */
export interface Shards<Store = unknown> {
  /** The names of the shards. */
  readonly names: readonly string[]
  /**
   * Creates the store in front of the databases.
   * @param stores the stacks of layers of the databases, in the order of `names`
   */
  createSharded(stores: readonly Store[], onRefund: OnRefund): Store
}
