import {
  type Algorithm,
  algorithms,
  greatest,
  type Held,
  least,
  type Period,
  type Terms,
} from './algorithms.ts'
import type { ModelLimit } from './types.ts'

/** The stored state of one limit, and its run-out: the time from which on it is absent. */
export type State = Held & { runOut: bigint; members?: string[] }

/** Returns the smallest n ≥ 0 for which `holds` is true. It must then be true for every larger n. */
export function search(holds: (n: bigint) => boolean): bigint {
  if (holds(0n)) return 0n
  let high = 1n
  while (!holds(high)) high *= 2n
  let low = high / 2n
  while (high - low > 1n) {
    const middle = (low + high) / 2n
    if (holds(middle)) high = middle
    else low = middle
  }
  return high
}

/** Computes waits, charges and refunds of one limit. A state counts before its run-out and is absent from then on. */
export class LimitModel {
  readonly algorithm: Algorithm
  readonly terms: Terms
  readonly capacity: bigint
  readonly floor: bigint

  constructor({
    terms: policy,
    period,
    floor = 0,
  }: Pick<ModelLimit, 'terms' | 'period' | 'floor'>) {
    const { algorithm, limit, windowMs, burst, align } = policy
    if (algorithm === 'concurrency' || algorithm === 'distinct')
      throw new Error(`LimitModel does not support ${algorithm}. Use Slots or Values.`)
    const calendar = period && algorithm === 'fixed-window'
    this.algorithm = algorithms[algorithm]
    this.terms = {
      limit: BigInt(limit),
      window: BigInt(windowMs),
      burst: BigInt(burst),
      clock: align === 'clock',
      period: calendar ? (period.map(BigInt) as Period) : undefined,
    }
    this.capacity = this.algorithm.capacity(this.terms)
    this.floor = BigInt(floor)
  }

  /** Returns the state to decide by. If the clock moves back, a state is read at its stored time. */
  stateAt(state: State | undefined, now: bigint): { held: Held; t: bigint } {
    const live = state && now < state.runOut ? state : undefined
    const t = live ? greatest(now, live.time) : now
    return { held: this.algorithm.at(live, t, this.terms), t }
  }

  /** True if the cost leaves the floor free. */
  fits(state: State | undefined, cost: bigint, now: bigint): boolean {
    return cost === 0n || this.isFree(state, cost + this.floor, now)
  }

  isFree(state: State | undefined, units: bigint, now: bigint): boolean {
    if (units > this.capacity) return false
    const { held, t } = this.stateAt(state, now)
    return this.algorithm.fits(held, units, t, this.terms)
  }

  /** Returns the shortest wait in ms after which `cost` fits, if no other request is charged. */
  wait(state: State | undefined, cost: bigint, now: bigint): bigint {
    return search((wait) => this.fits(state, cost, now + wait))
  }

  /** Returns the wait in ms until the whole quota is free. */
  fullAfter(state: State | undefined, now: bigint): bigint {
    return search((wait) => this.isFree(state, this.capacity, now + wait))
  }

  /** Returns `after` with its run-out, or `undefined` if it runs out immediately. */
  keep(after: Held, now: bigint): State | undefined {
    const endless = { ...after, runOut: 1n << 62n }
    const runOut = now + this.fullAfter(endless, now)
    return runOut === now ? undefined : { ...after, runOut }
  }

  take(state: State | undefined, cost: bigint, now: bigint): State | undefined {
    const { held, t } = this.stateAt(state, now)
    return this.keep(this.algorithm.charge(held, cost, t, this.terms), now)
  }

  /** Returns `state` itself if the bound is already reached. */
  owe(state: State | undefined, cost: bigint, now: bigint): State | undefined {
    const { held, t } = this.stateAt(state, now)
    const after = this.algorithm.owe(held, cost, t, this.terms)
    const isSame = after === held || after.numbers.join() === held.numbers.join()
    return isSame ? state : this.keep(after, now)
  }

  /** Returns `state` itself if nothing is refunded. A refund never postpones the run-out. */
  refund(state: State | undefined, units: bigint, now: bigint, decidedAt: bigint | undefined) {
    const { held, t } = this.stateAt(state, now)
    const refunded = this.algorithm.refund(held, units, t, this.terms, decidedAt, state)
    if (!state || refunded === held) return state
    const kept = this.keep(refunded, now)
    return kept && { ...kept, runOut: least(kept.runOut, state.runOut) }
  }

  report(state: State | undefined, now: bigint) {
    const free = search((c) => c === this.capacity || !this.isFree(state, c + 1n, now))
    const remaining = greatest(0n, free - this.floor)
    const full = remaining === this.capacity - this.floor
    return {
      remaining: Number(remaining),
      resetAfterMs: Number(this.fullAfter(state, now)),
      nextAfterMs: full ? 0 : Number(this.wait(state, remaining + 1n, now)),
      ...(this.floor > 0n && { reserved: Number(free - remaining) }),
    }
  }
}
