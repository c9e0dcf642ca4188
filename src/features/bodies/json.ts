/** A strict reader of JSON. Servers differ in how they read what it refuses, so a client could make them run something else than Sluice counts. */
import { jsonFlaw } from '../../core/base/json-flaw.ts'

/** A body or a value that is present, and cannot be read. */
export const UNREADABLE = Symbol('unreadable')

export const MAX_LEVELS = 64

/**
 * Parses a JSON text.
 * @throws {SyntaxError} also if it has a duplicate key, or is nested more than 64 levels deep
 */
export function parseStrict(text: string): unknown {
  const value: unknown = JSON.parse(text)
  const flaw = jsonFlaw(text, MAX_LEVELS)
  if (flaw) throw new SyntaxError(`it has ${flaw}`)
  return value
}

/** Folds letter case as Go's encoding/json does, where `ſ` is an `s` and the Kelvin sign is a `k`. */
const folded = (name: string) => name.toUpperCase().toLowerCase()

/**
 * Finds the value of a path such as `params.name` or `messages.0.role`. Only own properties count. The result is unreadable if a key
 * equals a name of the path except for letter case, because some servers ignore the case.
 */
export function valueAt(value: unknown, path: string): unknown {
  let node = value
  for (const name of path.split('.')) {
    if (Array.isArray(node)) node = /^\d+$/.test(name) ? node[Number(name)] : undefined
    else if (Object(node) === node) {
      const same = folded(name)
      if (Object.keys(node as object).some((key) => key !== name && folded(key) === same)) {
        return UNREADABLE
      }
      node = Object.hasOwn(node as object, name)
        ? (node as Record<string, unknown>)[name]
        : undefined
    } else return undefined
  }
  return node ?? undefined
}

/** The text of a value. `null` for a list or an object, which some servers convert to text, and for a number that JavaScript rounds. */
export function textOf(value: unknown): string | null | undefined {
  if (value === undefined || typeof value === 'string') return value
  if (typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER) return String(value)
  return typeof value === 'boolean' ? String(value) : null
}
