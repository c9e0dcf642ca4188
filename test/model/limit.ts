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

  constructor({ terms: policy, period }: Pick<ModelLimit, 'terms' | 'period'>) {
    const { algorithm, limit, windowMs, burst, align } = policy
    if (algorithm === 'concurrency')
      throw new Error('LimitModel does not support concurrency. Use Slots.')
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
  }

  /** Returns the state to decide by. If the clock moves back, a state is read at its stored time. */
  stateAt(state: State | undefined, now: bigint): { held: Held; t: bigint } {
    const live = state && now < state.runOut ? state : undefined
    const t = live ? greatest(now, live.time) : now
    return { held: this.algorithm.at(live, t, this.terms), t }
  }

  fits(state: State | undefined, cost: bigint, now: bigint): boolean {
    if (cost === 0n) return true
    if (cost > this.capacity) return false
    const { held, t } = this.stateAt(state, now)
    return this.algorithm.fits(held, cost, t, this.terms)
  }

  /** Returns the shortest wait in ms after which `cost` fits, if no other request is charged. */
  wait(state: State | undefined, cost: bigint, now: bigint): bigint {
    return search((wait) => this.fits(state, cost, now + wait))
  }

  /** Returns `after` with its run-out, or `undefined` if it runs out immediately. */
  keep(after: Held, now: bigint): State | undefined {
    const endless = { ...after, runOut: 1n << 62n }
    const runOut = now + this.wait(endless, this.capacity, now)
    return runOut === now ? undefined : { ...after, runOut }
  }

  take(state: State | undefined, cost: bigint, now: bigint): State | undefined {
    const { held, t } = this.stateAt(state, now)
    return this.keep(this.algorithm.charge(held, cost, t, this.terms), now)
  }

  /** Returns `state` itself if nothing is refunded. A refund never postpones the run-out. */
  refund(state: State | undefined, units: bigint, now: bigint, decidedAt: bigint | undefined) {
    const { held, t } = this.stateAt(state, now)
    const refunded = this.algorithm.refund(held, units, t, this.terms, decidedAt)
    if (!state || refunded === held) return state
    const kept = this.keep(refunded, now)
    return kept && { ...kept, runOut: least(kept.runOut, state.runOut) }
  }

  report(state: State | undefined, now: bigint) {
    const remaining = search((c) => c === this.capacity || !this.fits(state, c + 1n, now))
    const full = remaining === this.capacity
    return {
      remaining: Number(remaining),
      resetAfterMs: Number(this.wait(state, this.capacity, now)),
      nextAfterMs: full ? 0 : Number(this.wait(state, remaining + 1n, now)),
    }
  }
}
