/** Implements concurrency as docs/explanation/algorithms.md and lua/README.md define it. */

import { greatest } from './algorithms.ts'
import { type State, search } from './limit.ts'
import type { ModelLimit } from './types.ts'

/** The slots of one key. A state has `members` and, in the same order, their ends. */
export class Slots {
  readonly capacity: bigint
  readonly floor: bigint
  readonly life: bigint
  readonly id: string | undefined

  constructor({ terms: { limit, windowMs }, slot, floor = 0 }: ModelLimit) {
    this.capacity = BigInt(limit)
    this.floor = BigInt(floor)
    this.life = BigInt(windowMs)
    this.id = slot
  }

  hasOwnId = (member: string) => member.slice(0, member.lastIndexOf(':')) === this.id

  live(state: State | undefined, now: bigint) {
    return (state?.numbers ?? [])
      .map((end, index) => ({ end, member: state!.members![index]! }))
      .filter(({ end }) => now < end)
  }

  /** An id that holds slots takes no more. */
  holds = (state: State | undefined, now: bigint) =>
    this.live(state, now).some(({ member }) => this.hasOwnId(member))

  hasRoom = (state: State | undefined, cost: bigint, now: bigint) =>
    BigInt(this.live(state, now).length) + cost + this.floor <= this.capacity

  fits = (state: State | undefined, cost: bigint, now: bigint) =>
    cost === 0n || this.holds(state, now) || this.hasRoom(state, cost, now)

  /** Returns the wait in ms if no slot is released. */
  wait = (state: State | undefined, cost: bigint, now: bigint) =>
    search((wait) => this.hasRoom(state, cost, now + wait))

  take(state: State | undefined, cost: bigint, now: bigint): State | undefined {
    if (this.holds(state, now)) return state
    const live = this.live(state, now)
    // No slot ends before one that was taken earlier, even if the clock has moved back.
    const end = live.map((slot) => slot.end).reduce(greatest, now + this.life)
    const taken = Array.from({ length: Number(cost) }, (_, n) => ({
      member: `${this.id}:${n + 1}`,
      end,
    }))
    return stateOf([...live, ...taken])
  }

  refund(state: State | undefined): State | undefined {
    const slots = this.live(state, -1n)
    const others = slots.filter(({ member }) => !this.hasOwnId(member))
    return others.length === slots.length ? state : stateOf(others)
  }

  report(state: State | undefined, now: bigint) {
    const live = BigInt(this.live(state, now).length)
    const free = greatest(0n, this.capacity - live)
    const remaining = greatest(0n, free - this.floor)
    const isFull = remaining === this.capacity - this.floor
    return {
      remaining: Number(remaining),
      resetAfterMs: Number(search((wait) => this.live(state, now + wait).length === 0)),
      nextAfterMs: isFull ? 0 : Number(this.wait(state, remaining + 1n, now)),
      ...(this.floor > 0n && { reserved: Number(free - remaining) }),
    }
  }
}

function stateOf(slots: { member: string; end: bigint }[]): State | undefined {
  if (slots.length === 0) return undefined
  const numbers = slots.map(({ end }) => end)
  const members = slots.map(({ member }) => member)
  return { time: 0n, runOut: numbers.reduce(greatest), numbers, members }
}
