/** A Redis Cluster behind one REST endpoint, whose parts are hash slots. */
import {
  type Idempotency,
  type OnRefund,
  type Store,
  type StoreCall,
  type StoreRequest,
  storeBy,
} from '../../core/connection/store.ts'
import type { UpstashStore } from '../../core/connection/upstash/upstash.ts'
import { inGroups, subjectOf } from '../split/groups.ts'
import { createSplitStore, type DecideParts } from '../split/split.ts'

/** Splits requests by slot, all in one HTTP request. A list in one slot is one call of the script. @param store the layers over `bySlot` */
export function createCluster(store: Store, onRefund?: OnRefund): Store {
  const decideParts: DecideParts = async (parts, options, isOne) => {
    const lists = parts.flatMap(({ lists }) => lists)
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
  return createSplitStore(slotOf, decideParts, onRefund)
}

export const slots = { wrap: bySlot, spread: createCluster }

/** Sends the lists of each slot in calls of the script of their own. Requires that each list has all its limits in one slot. */
export function bySlot(upstash: UpstashStore): Store {
  return storeBy((lists, { idempotency, ...options }) =>
    inGroups(
      lists,
      (list) => slotOf(subjectOf(list)),
      (groups) =>
        upstash.decideGroups(
          groups.map(([, lists]) => ({ lists, ...inSlot(idempotency, lists[0]!) })),
          options,
        ),
    ),
  )
}

/** Puts the idempotency key into the slot of a list: a brace in its name ends the hash tag of `sluice:1:{subject}:name}`. */
const inSlot = (idempotency: Idempotency | undefined, list: StoreRequest[]) =>
  idempotency && {
    idempotency: { ...idempotency, key: `${tagOf(subjectOf(list))}}:${idempotency.key}` },
  }

const SLOTS = 16_384

/** The hash slot of all keys of a subject: CRC-16/XMODEM of their hash tag (Redis Cluster specification, "Hash tags"). */
export const slotOf = (subject: string): number =>
  crc16(new TextEncoder().encode(tagOf(subject))) % SLOTS

/** The hash tag of all keys of a subject: `{subject}` ends at the first `}`. */
const tagOf = (subject: string): string => subject.split('}', 1)[0]!

export function crc16(bytes: Uint8Array): number {
  let crc = 0
  for (const byte of bytes) {
    let x = (crc >> 8) ^ byte
    x ^= x >> 4
    crc = ((crc << 8) ^ (x << 12) ^ (x << 5) ^ x) & 0xffff
  }
  return crc
}
