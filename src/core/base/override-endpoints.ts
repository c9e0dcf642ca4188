/** The interface between the decision API and `sluice/overrides`. Types only. */

/** The result of `overrides()`. */
export interface Overrides {
  /** The endpoints of the decision API for the limits of single keys. */
  endpoints: readonly object[]
}
