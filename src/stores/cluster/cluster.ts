/** A Redis Cluster behind one REST endpoint, whose parts are hash slots. */
import { asStoreError } from '../../core/base/errors.ts'
import type {
  Idempotency,
  OnRefund,
  Store,
  StoreCall,
  StoreRequest,
  StoreResult,
} from '../../core/connection/store.ts'
import type { UpstashStore } from '../../core/connection/upstash/upstash.ts'
import { createSplitStore, type DecideParts, type SplitOptions } from '../split/split-store.ts'
import { slotOf, tagOf } from './slot.ts'

/**
 * A store that splits requests by slot. A list with all its limits in one slot is one call of the script. Otherwise the parts of a request
 * are its slots, and all parts go in one HTTP request.
 * @param store the stack of layers over `bySlot`
 */
export function createCluster(store: Store, options?: SplitOptions): Store {
  const decideParts: DecideParts = async (parts, options, isOne) => {
    const lists = parts.flatMap(({ lists }) => lists)
    if (isOne && lists.length === 1) {
      return [[await store.decide(lists[0]!, options).catch(asStoreError)]]
    }
    const { onCall } = options
    const onShares = (call: StoreCall) => {
      for (const _part of lists) onCall!(call) // each part has a share in the call
    }
    const replies = await store.decideEach(lists, {
      ...options,
      ...(onCall && isOne && { onCall: onShares }),
    })
    return parts.map(({ lists }) => replies.splice(0, lists.length))
  }
  return createSplitStore(slotOf, decideParts, options)
}

/** The layers over a store whose keys are in slots. */
export const slots = {
  wrap: bySlot,
  spread: (store: Store, onRefund: OnRefund): Store => createCluster(store, { onRefund }),
}

/** Sends the lists of each slot in calls of the script of their own. Requires that each list has all its limits in one slot. */
export function bySlot(upstash: UpstashStore): Store {
  return {
    decide: (list, { idempotency, ...options } = {}) =>
      upstash.decide(list, { ...options, ...inSlot(idempotency, list) }),

    async decideEach(lists, { idempotency, ...options } = {}) {
      const slots = new Map<number, number[]>()
      lists.forEach((list, index) => {
        const slot = slotOf(subjectOf(list))
        const indexes = slots.get(slot)
        if (indexes) indexes.push(index)
        else slots.set(slot, [index])
      })
      const groups = [...slots.values()]
      const packs = groups.map((indexes) => ({
        lists: indexes.map((index) => lists[index]!),
        ...inSlot(idempotency, lists[indexes[0]!]!),
      }))
      const answers = await upstash.decideGroups(packs, options)
      const replies: StoreResult[] = []
      groups.flat().forEach((index, at) => {
        replies[index] = answers[at]!
      })
      return replies
    },
  }
}

const subjectOf = ([request]: StoreRequest[]) => request!.limits[0]!.subject

/**
 * Puts the idempotency key into the slot of a list. The name of a key is the text in its braces, and a brace in the name ends the hash tag:
 * `sluice:1:{subject}:name}`.
 */
const inSlot = (idempotency: Idempotency | undefined, list: StoreRequest[]) =>
  idempotency && {
    idempotency: { ...idempotency, key: `${tagOf(subjectOf(list))}}:${idempotency.key}` },
  }
