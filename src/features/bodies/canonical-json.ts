import { MAX_LEVELS } from './json.ts'

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
