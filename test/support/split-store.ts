import { fnv1a } from '../../src/core/base/fnv.ts'
import type { OnRefund, Store } from '../../src/core/connection/store.ts'
import { createSplitStore } from '../../src/stores/split/split.ts'

/** The index of the store that has a subject. */
export const partOf = (subject: string, stores: number) => fnv1a(subject) % stores

/** A store whose parts are these stores. */
export const splitOver = (stores: readonly Store[], onRefund?: OnRefund): Store =>
  createSplitStore(
    (subject) => partOf(subject, stores.length),
    (parts, options) =>
      Promise.all(parts.map(({ part, lists }) => stores[Number(part)]!.decideEach(lists, options))),
    onRefund,
  )
