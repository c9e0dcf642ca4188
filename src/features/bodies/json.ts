/** A strict reader of JSON. Servers differ in how they read what it refuses, so a client could make them run something else than Sluice counts. */
import { jsonFlaw } from '../../core/base/json-flaw.ts'

/** A body or a value that is present, and cannot be read. */
export const UNREADABLE = Symbol('unreadable')

export const MAX_LEVELS = 64

/** @throws {SyntaxError} also if it has a duplicate key, or is nested more than 64 levels deep */
export function parseStrict(text: string): unknown {
  const value: unknown = JSON.parse(text)
  const flaw = jsonFlaw(text, MAX_LEVELS)
  if (flaw) throw new SyntaxError(`it has ${flaw}`)
  return value
}

export const memberOf = (value: unknown, name: string): unknown =>
  Object(value) === value && Object.hasOwn(value as object, name)
    ? (value as Record<string, unknown>)[name]
    : undefined

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
    else if (Object(node) !== node) return undefined
    else {
      const same = folded(name)
      const isSame = (key: string) => key !== name && folded(key) === same
      if (Object.keys(node as object).some(isSame)) return UNREADABLE
      node = memberOf(node, name)
    }
  }
  return node ?? undefined
}

/** The text of a value. `null` for a list or an object, which some servers convert to text, and for a number that JavaScript rounds. */
export function textOf(value: unknown): string | null | undefined {
  if (value === undefined || typeof value === 'string') return value
  if (typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER) return String(value)
  return typeof value === 'boolean' ? String(value) : null
}

/**
 * Writes a parsed JSON value in the canonical form of RFC 8785, in which equal values have equal texts: members are sorted, and numbers
 * and texts are written as ECMAScript does.
 * @returns `undefined` for a value without this form: with a number beyond the range of a double, or with half a surrogate pair, for one
 * that is nested more than 64 levels deep, and for one that JSON does not have, such as a BigInt of an app's own parser
 */
export function canonicalJson(value: unknown): string | undefined {
  let isCanonical = true
  const write = (value: unknown, level: number): string => {
    // A body that an app has parsed may be nested so deep that the stack overflows.
    isCanonical &&= level <= MAX_LEVELS
    if (!isCanonical) return ''
    if (Array.isArray(value)) return `[${value.map((item) => write(item, level + 1))}]`
    if (Object(value) === value && typeof value !== 'function') {
      const object = value as Record<string, unknown>
      const members = Object.keys(object).sort() // by UTF-16 code units
      return `{${members.map((name) => `${write(name, level)}:${write(object[name], level + 1)}`)}}`
    }
    if (typeof value === 'string') isCanonical &&= !/\p{Surrogate}/u.test(value)
    else if (typeof value === 'number') isCanonical &&= Number.isFinite(value)
    else isCanonical &&= value === null || typeof value === 'boolean'
    return isCanonical ? JSON.stringify(value) : ''
  }
  const text = write(value, 0)
  return isCanonical ? text : undefined
}
