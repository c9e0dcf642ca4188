/** The interface between the stack of store layers and `sluice/leases`. Types only. */

/** The result of `leases()`. */
export interface Leases {
  /** Puts leases on a store: units that the isolate takes in advance, of which it keeps at most `maxBytes`. */
  layer<Store extends object>(store: Store, options: { maxBytes: number }): Store
}
