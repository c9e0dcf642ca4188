import { asStoreError } from '../../src/core/base/errors.ts'
import type { Store } from '../../src/core/connection/store.ts'

/** A store that decides each of many lists as it decides one. */
export const storeOf = (decide: Store['decide']): Store => ({
  decide,
  decideEach: (lists, options) =>
    Promise.all(lists.map((list) => decide(list, options).catch(asStoreError))),
})
