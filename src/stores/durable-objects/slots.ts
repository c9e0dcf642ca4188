/** Concurrency: slots that are held until their release or their end. lua/README.md defines them. */
import { withFloor } from '../../core/connection/algorithms/index.ts'
import type { Limit, StoreState } from '../../core/connection/store.ts'
import type { Slots } from './record.ts'

type List = readonly Slots[]

/** The ends of the slots, earliest first, and that of a slot that is taken now: none ends before one that was taken earlier. */
function viewOf(list: List, { terms }: Limit, now: number) {
  const ends = list
    .filter(({ end }) => end > now)
    .flatMap(({ end, count }) => new Array<number>(count).fill(end))
    .sort((one, other) => one - other)
  return { ends, newest: Math.max(now + terms.windowMs, ends.at(-1) ?? 0) }
}

const holds = (list: List, id: string | undefined, now: number) =>
  list.some((slots) => slots.id === id && slots.end > now)

const capacity = ({ terms, floor }: Limit) => withFloor(terms.algorithm, terms, floor).limit

/** True if the slots of a request are free, or if its id already holds slots. */
export function hasRoom(list: List, limit: Limit, now: number): boolean {
  const { cost, slot } = limit
  if (cost === 0 || holds(list, slot, now)) return true
  return viewOf(list, limit, now).ends.length + cost <= capacity(limit)
}

/** Takes slots. An id that holds slots takes no more. Removes slots that have ended. */
export function takenSlots(list: List, limit: Limit, now: number): List | undefined {
  const { cost, slot } = limit
  if (cost === 0 || holds(list, slot, now)) return undefined
  const { newest } = viewOf(list, limit, now)
  return [...list.filter(({ end }) => end > now), { id: slot!, end: newest, count: cost }]
}

/** Releases all slots of an id at any cost. */
export function releasedSlots(list: List, { cost, slot }: Limit): List | undefined {
  const others = list.filter(({ id }) => id !== slot)
  return cost === 0 || others.length === list.length ? undefined : others
}

/** The numbers of a limit, without a charge. Waits are the longest possible ones: most slots are released earlier. */
export function slotsState(list: List, limit: Limit, now: number): Omit<StoreState, 'allowed'> {
  const { ends, newest } = viewOf(list, limit, now)
  const { cost, slot, floor = 0 } = limit
  const size = capacity(limit)
  const used = ends.length
  const wait = (n: number) => (n > used ? newest : ends[n - 1]!) - now
  const isRefused = cost > 0 && used + cost > size && !holds(list, slot, now)
  const remaining = Math.max(0, size - used)
  return {
    remaining,
    retryAfterMs: !isRefused ? 0 : cost > size ? null : wait(used + cost - size),
    resetAfterMs: used > 0 ? ends.at(-1)! - now : 0,
    nextAfterMs: remaining < size ? wait(used + remaining + 1 - size) : 0,
    ...(floor > 0 && { reserved: Math.max(0, Math.min(floor, size - used + floor)) }),
  }
}
