/** Implements the bans of docs/explanation/algorithms.md and lua/README.md. */

import { greatest, least } from './algorithms.ts'
import type { State } from './limit.ts'
import type { ModelLimit } from './types.ts'

export interface LimitStatus {
  /** The number of counted refusals, and the end of counting. */
  counted: State | undefined
  /** The start and length of the last ban, until it is forgotten. */
  ban: State | undefined
}

type Terms = Record<'after' | 'within' | 'first' | 'most', bigint>

export function termsOf({
  after,
  withinMs,
  banMs,
  maxMs,
}: NonNullable<ModelLimit['penalty']>): Terms {
  const [first, most] = [BigInt(banMs), BigInt(maxMs)]
  return { after: BigInt(after), within: BigInt(withinMs), first, most }
}

/** Returns the length of the last ban. A maximum that was lowered since then shortens it. */
const lengthOf = (ban: State, { most }: Terms) => least(ban.numbers[0]!, most)

/** Returns the rest of the ban in ms, or 0 without a ban. */
export function restOf({ ban }: LimitStatus, terms: Terms, now: bigint): bigint {
  if (!ban || ban.runOut <= now) return 0n
  return greatest(0n, ban.time + lengthOf(ban, terms) - now)
}

/** Returns the state after a refusal of a client that is not banned. */
export function refused({ counted, ban }: LimitStatus, terms: Terms, now: bigint): LimitStatus {
  const open = counted && now < counted.runOut ? counted : undefined
  const count = (open?.numbers[0] ?? 0n) + 1n
  if (count < terms.after) {
    const since = open ?? { time: now, runOut: now + terms.within }
    return { ban, counted: { time: since.time, runOut: since.runOut, numbers: [count] } }
  }
  // After its end, a ban is remembered for as long as it lasted.
  const remembered = ban && now < least(ban.runOut, ban.time + 2n * lengthOf(ban, terms))
  const wanted = remembered ? greatest(terms.first, 2n * lengthOf(ban, terms)) : terms.first
  return banned(least(wanted, terms.most), now)
}

/** Returns the state with a ban from now on. It replaces the previous state. */
export const banned = (length: bigint, now: bigint): LimitStatus => ({
  counted: undefined,
  ban: { time: now, runOut: now + 2n * length, numbers: [length] },
})
