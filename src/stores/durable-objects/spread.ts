/** Requests with limits of several subjects: each of their objects charges all of its limits, or none. */
import { asStoreError } from '../../core/base/errors.ts'
import type { OnRefund, Store, StoreRequest } from '../../core/connection/store.ts'
import { createSplitStore, type DecideParts } from '../split/split-store.ts'

/**
 * A store that splits requests by subject.
 * @param store the stack of layers, whose lists each have one subject
 */
export function spreadBySubject(store: Store, onRefund: OnRefund): Store {
  const decideParts: DecideParts = (parts, options, isOne) =>
    Promise.all(
      parts.map(async ({ lists }) =>
        isOne
          ? [await store.decide(lists[0]!, options).catch(asStoreError)]
          : store.decideEach(lists, options),
      ),
    )

  /** A store for one call: its parts are the subjects of the call. */
  function split(): Store {
    const numbers = new Map<string, number>()
    const partOf = (subject: string) => {
      const part = numbers.get(subject) ?? numbers.size
      numbers.set(subject, part)
      return part
    }
    return createSplitStore(partOf, decideParts, { onRefund })
  }

  return {
    decide: (list, options) => (hasOneSubject(list) ? store : split()).decide(list, options),
    decideEach: (lists, options) =>
      lists.length === 1 && hasOneSubject(lists[0]!)
        ? store.decideEach(lists, options)
        : split().decideEach(lists, options),
  }
}

function hasOneSubject(list: StoreRequest[]): boolean {
  const { subject } = list[0]!.limits[0]!
  return list.every(({ limits }) => limits.every((limit) => limit.subject === subject))
}
