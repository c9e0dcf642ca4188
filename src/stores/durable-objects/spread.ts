/** Requests with limits of several subjects: each of their objects charges all of its limits, or none. */
import { asStoreError } from '../../core/base/errors.ts'
import type { OnRefund, Store } from '../../core/connection/store.ts'
import { createSplitStore } from '../split/split-store.ts'

/**
 * A store that splits requests by subject.
 * @param store the stack of layers, whose lists each have one subject
 */
export const spreadBySubject = (store: Store, onRefund: OnRefund): Store =>
  createSplitStore(
    (subject) => subject,
    (parts, options, isOne) =>
      Promise.all(
        parts.map(async ({ lists }) =>
          isOne
            ? [await store.decide(lists[0]!, options).catch(asStoreError)]
            : store.decideEach(lists, options),
        ),
      ),
    onRefund,
  )
