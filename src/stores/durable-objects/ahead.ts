/**
 * Writes counts ahead, so that most decisions for a busy subject write nothing. The stored record is never less strict than the one in
 * memory: an object that loses its memory may refuse too early, and never admits too much.
 */
import type { QuotaTerms } from '../../core/connection/algorithms/index.ts'
import type { Terms } from '../../core/connection/store.ts'
import type { KeptState, Record } from './record.ts'

/** The units of a window or a bucket that one write charges, its own included. */
export const STEP = 10
/** How far the time of a stored bucket is ahead, ms. Until then nothing flows back in it, whatever rate a plan has. */
export const AHEAD_MS = 1_000

/** The terms of a state that is a count. Other states are not written ahead. */
export type CountTerms = Pick<Terms, 'algorithm'> & QuotaTerms

/** The record to store, or `undefined` if the stored one is strict enough. @param isDense true if the subject has made a request shortly before */
export function recordToStore(
  stored: Record,
  record: Record,
  counts: ReadonlyMap<string, CountTerms>,
  isDense: boolean,
): Record | undefined {
  const next = new Map<string, KeptState>()
  let isChanged = false
  for (const [tag, state] of record) {
    const known = stored.get(tag)
    const terms = counts.get(tag)
    if (known && (isEqual(known, state) || (terms && isStrict(known, state, terms)))) {
      next.set(tag, known)
    } else {
      next.set(tag, terms && isDense ? advanced(state, terms) : state)
      isChanged = true
    }
  }
  for (const tag of stored.keys()) isChanged ||= !record.has(tag)
  return isChanged ? next : undefined
}

export const isEqual = (one: KeptState, other: KeptState): boolean =>
  one === other ||
  (one.time === other.time &&
    one.end === other.end &&
    one.numbers.length === other.numbers.length &&
    one.numbers.every((number, index) => number === other.numbers[index]))

/** True if a stored state is at least as strict as the current one, at any time and under any plan, and by less than a step. */
function isStrict(
  stored: KeptState,
  state: KeptState,
  { algorithm, limit, windowMs }: CountTerms,
): boolean {
  const extra = stored.numbers[0]! - state.numbers[0]!
  if (extra < 0 || stored.end < state.end) return false
  if (algorithm === 'token-bucket') {
    return stored.time >= state.time && extra <= (STEP - 1) * windowMs + AHEAD_MS * limit
  }
  return stored.time === state.time && stored.numbers[1] === state.numbers[1] && extra <= STEP - 1
}

function advanced(state: KeptState, { algorithm, limit, burst, windowMs }: CountTerms): KeptState {
  const [first = 0, ...others] = state.numbers
  if (algorithm !== 'token-bucket') {
    return { ...state, numbers: [Math.max(first, Math.min(limit, first + STEP - 1)), ...others] }
  }
  const missing = Math.max(first, Math.min(burst * windowMs, first + (STEP - 1) * windowMs))
  const time = state.time + AHEAD_MS
  return { time, numbers: [missing], end: time + Math.ceil(missing / limit) }
}
