/** Implements `distinct` as docs/explanation/algorithms.md and lua/README.md define it, by a list of all uses. */
import { greatest } from './algorithms.ts'
import { type State, search } from './limit.ts'
import type { ModelLimit } from './types.ts'

interface Use {
  value: string
  time: bigint
  /** True if the value counted already. */
  isRepeat: boolean
}

/** The values of one key. A state has all uses that may count, oldest first: `members` are the values, with a `+` before that of a repeat, and `numbers` the times. */
export class Values {
  readonly capacity: bigint
  readonly floor: bigint
  readonly window: bigint
  readonly values: readonly string[]

  constructor({ terms: { limit, windowMs }, values = [], floor = 0 }: ModelLimit) {
    this.capacity = BigInt(limit)
    this.floor = BigInt(floor)
    this.window = BigInt(windowMs)
    this.values = values
  }

  /** The time to decide at: the clock may have moved back. */
  timeOf = (state: State | undefined, now: bigint) => (state?.numbers ?? []).reduce(greatest, now)

  live(state: State | undefined, now: bigint): Use[] {
    const after = this.timeOf(state, now) - this.window
    return usesOf(state).filter(({ time }) => time > after)
  }

  count = (uses: Use[]) => BigInt(new Set(uses.map(({ value }) => value)).size)

  fits(state: State | undefined, cost: bigint, now: bigint): boolean {
    const live = this.live(state, now)
    const isOwn = ({ value }: Use) => this.values.includes(value)
    const known = this.count(live.filter(isOwn))
    const others = this.count(live.filter((use) => !isOwn(use)))
    return cost <= known || others + cost + this.floor <= this.capacity
  }

  wait = (state: State | undefined, cost: bigint, now: bigint) =>
    search((wait) => this.fits(state, cost, now + wait))

  take(state: State | undefined, _: bigint, now: bigint): State | undefined {
    const time = this.timeOf(state, now)
    const live = this.live(state, now)
    const isLive = (value: string) => live.some((use) => use.value === value)
    const taken = this.values.map((value) => ({ value, time, isRepeat: isLive(value) }))
    return this.stateOf([...live, ...taken])
  }

  /** Takes a value back that did not count before `decidedAt`, and has not been used since. */
  refund(state: State | undefined, _: bigint, now: bigint, decidedAt: bigint | undefined) {
    const live = this.live(state, now)
    const isTaken = (value: string) => {
      const last = live.findLast((use) => use.value === value)
      if (!last || !this.values.includes(value)) return false
      return decidedAt === undefined || (!last.isRepeat && last.time === decidedAt)
    }
    const uses = usesOf(state)
    const kept = uses.filter(({ value }) => !isTaken(value))
    return kept.length === uses.length ? state : this.stateOf(kept)
  }

  report(state: State | undefined, now: bigint) {
    const used = (wait: bigint) => this.count(this.live(state, now + wait))
    const free = (wait: bigint) => greatest(0n, this.capacity - used(wait))
    const left = (wait: bigint) => greatest(0n, free(wait) - this.floor)
    const remaining = left(0n)
    return {
      remaining: Number(remaining),
      resetAfterMs: Number(search((wait) => used(wait) === 0n)),
      nextAfterMs:
        remaining === this.capacity - this.floor
          ? 0
          : Number(search((wait) => left(wait) > remaining)),
      ...(this.floor > 0n && { reserved: Number(free(0n) - remaining) }),
    }
  }

  stateOf(uses: Use[]): State | undefined {
    if (uses.length === 0) return undefined
    const numbers = uses.map(({ time }) => time)
    const members = uses.map(({ value, isRepeat }) => (isRepeat ? `+${value}` : value))
    return { time: 0n, runOut: numbers.reduce(greatest) + this.window, numbers, members }
  }
}

const usesOf = (state: State | undefined): Use[] =>
  (state?.numbers ?? []).map((time, index) => {
    const member = state!.members![index]!
    return { time, value: member.replace('+', ''), isRepeat: member.startsWith('+') }
  })

/** The entries of Redis: each value with the time of its last use, half a ms earlier for a repeat. */
export function entriesOf(state: State | undefined): string[] {
  const uses = usesOf(state)
  return [...new Set(uses.map(({ value }) => value))].map((value) => {
    const { time, isRepeat } = uses.findLast((use) => use.value === value)!
    return `${value} at ${Number(time) - (isRepeat ? 0.5 : 0)}`
  })
}
