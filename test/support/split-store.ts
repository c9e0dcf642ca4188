import { asStoreError } from '../../src/core/base/errors.ts'
import { fnv1a } from '../../src/core/base/fnv.ts'
import type { OnRefund, Store } from '../../src/core/connection/store.ts'
import { createSplitStore } from '../../src/stores/split/split.ts'

/** The index of the store that has a subject. */
export const partOf = (subject: string, stores: number) => fnv1a(subject) % stores

/** A store whose parts are these stores. */
export const splitOver = (stores: readonly Store[], onRefund?: OnRefund): Store =>
  createSplitStore(
    (subject) => partOf(subject, stores.length),
    (parts, options, isOne) =>
      Promise.all(
        parts.map(async ({ part, lists }) => {
          const store = stores[Number(part)]!
          return isOne
            ? [await store.decide(lists[0]!, options).catch(asStoreError)]
            : store.decideEach(lists, options)
        }),
      ),
    onRefund,
  )
