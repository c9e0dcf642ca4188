/** What is sent of asks, so that no client of the caller can make the decision API refuse to decide. */
import type { Ask, KeyValue, KeyValues } from '../api/schema.ts'

const MAX_CHARACTERS = 1024
const MAX_ASKS = 100
/** Of a body, which may have 64 KiB. */
const MAX_BYTES = 65_000

/** An ask with a key that is not too long: those that begin alike share a quota. Numbers go as text, which JSON has for all of them. */
export const sent = (ask: Ask): Ask => ('key' in ask ? { ...ask, key: cut(ask.key) } : ask)

const cut = (key: KeyValues): KeyValues =>
  Array.isArray(key) ? key.map((value) => cutOne(value)) : cutOne(key)
const cutOne = <T extends KeyValue | null>(value: T) =>
  typeof value === 'string' || typeof value === 'number'
    ? String(value).slice(0, MAX_CHARACTERS)
    : value

/** Neighbouring asks in as few lists as the decision API takes each of. */
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

function bytesOf(ask: Ask): number {
  try {
    return new TextEncoder().encode(`${JSON.stringify(sent(ask))},`).length
  } catch {
    return MAX_BYTES // what is no JSON fails by itself when it is sent
  }
}
