/** A strict reader of JSON. Servers differ in how they read what it refuses, so a client could make them run something else than Sluice counts. */
/** A body or a value that is present, and cannot be read. */
export const UNREADABLE = Symbol('unreadable')

const MAX_DEPTH = 64

/**
 * Parses a JSON text.
 * @throws {SyntaxError} also if it has a duplicate key, or is nested more than 64 levels deep
 */
export function parseStrict(text: string): unknown {
  const value: unknown = JSON.parse(text)
  checkKeys(text)
  return value
}

/** Scans a valid JSON text for duplicate keys. RFC 8259, 4: of two equal keys, some parsers use the first and some the last. */
function checkKeys(text: string) {
  /** The keys of each open object, and `undefined` for each open list. */
  const open: (Set<string> | undefined)[] = []
  let expectsKey = false
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index]!
    if (character === '{' || character === '[') {
      expectsKey = character === '{'
      open.push(expectsKey ? new Set() : undefined)
      if (open.length > MAX_DEPTH) throw new SyntaxError(`more than ${MAX_DEPTH} levels`)
    } else if (character === '}' || character === ']') {
      expectsKey = false
      open.pop()
    } else if (character === ',') expectsKey = open.at(-1) !== undefined
    else if (character === '"') {
      const start = index
      while (text[++index] !== '"') if (text[index] === '\\') index += 1
      if (!expectsKey) continue
      expectsKey = false
      const keys = open.at(-1)!
      const key: string = JSON.parse(text.slice(start, index + 1))
      if (keys.has(key)) throw new SyntaxError('a duplicate key')
      keys.add(key)
    }
  }
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
