/** Adapts asks to the limits of the decision API, so that no client can avoid a decision with an unusual key. */
import type { Ask, KeyValue, KeyValues } from '../api/schema.ts'
import { HELD_MS } from '../core/base/held.ts'

const MAX_CHARACTERS = 1024
const MAX_ASKS = 100
const MAX_COST = 2 ** 51
/** The maximum size of a list in a body, which may have 64 KiB. */
const MAX_BYTES = 65_000

/**
 * Cuts long key values; values with the same first 1024 characters share a quota. Sends numbers as strings, because JSON has no NaN. Omits
 * the body of a described request if it is too long.
 */
export function sent(ask: Ask): Ask {
  if ('key' in ask) return { ...ask, key: cut(ask.key) }
  const { request } = ask
  if (request?.body === undefined || sizeOf(ask) <= MAX_BYTES) return ask
  const { body: _, omitted = [], ...rest } = request
  return { ...ask, request: { ...rest, omitted: [...omitted, 'body'] } }
}

/**
 * Tells the API to answer in time: an ask that does not say how long it waits takes at most half of the deadline. Without an answer in time
 * `onError: 'allow'` would let every request pass that waits.
 * @param deadlineMs the part of the deadline that this call may take
 */
export function withWait(ask: Ask, deadlineMs: number): Ask {
  const waitMs = Math.floor(deadlineMs / 2)
  return ask.waitMs !== undefined || ask.mode === 'peek' || waitMs >= HELD_MS
    ? ask
    : { ...ask, waitMs }
}

/** For how long the asks of a call may wait, besides its deadline, ms. */
export const longestWait = (asks: readonly Ask[]): number =>
  Math.max(0, ...asks.map(({ waitMs = 0 }) => waitMs))

/**
 * Checks a cost before it is sent: JSON would make null of NaN, and `onError: 'allow'` would let the request pass for the error in the
 * program.
 * @throws {TypeError}
 */
export function checkCost(cost: number | undefined, path: string): void {
  if (cost === undefined || (Number.isInteger(cost) && cost >= 0 && cost <= MAX_COST)) return
  throw new TypeError(`${path}: expected whole units from 0 to 2^51, got ${cost}`)
}

const cut = (key: KeyValues): KeyValues =>
  Array.isArray(key) ? key.map((value) => cutOne(value)) : cutOne(key)
const cutOne = <T extends KeyValue | null>(value: T) =>
  typeof value === 'string' || typeof value === 'number'
    ? String(value).slice(0, MAX_CHARACTERS)
    : value

/** The values of a key in a path. Other values than those of an ask are never equal, so they are not cut. */
export const keyPath = (key: KeyValues): string =>
  [key]
    .flat()
    .map((value) => encodeURIComponent(value ?? ''))
    .join(',')

/** Splits asks into as few lists as the decision API accepts, in order. */
export function lists(asks: readonly Ask[]): Ask[][] {
  const all: Ask[][] = []
  let bytes = 0
  for (const ask of asks) {
    const size = bytesOf(ask)
    const last = all.at(-1)
    if (last && last.length < MAX_ASKS && bytes + size <= MAX_BYTES) {
      last.push(ask)
      bytes += size
    } else {
      all.push([ask])
      bytes = size
    }
  }
  return all
}

const sizeOf = (ask: Ask) => new TextEncoder().encode(JSON.stringify(ask)).length

function bytesOf(ask: Ask): number {
  try {
    return sizeOf(sent(ask)) + 1 // and a comma
  } catch {
    return MAX_BYTES // An ask that cannot be serialized gets a list of its own, and fails when it is sent.
  }
}
