import { flat } from './read/text.ts'

/** Bounds the characters of all keys. */
const MAX_SIZE = 4_000_000
/** Longer texts are not cached. */
const MAX_LENGTH = 256
/** What an entry takes in addition to its key, in characters. */
const OVERHEAD = 50

/** Remembers the results of a function of a text. It forgets all of them when there are too many. */
export function cached<Value>(compute: (text: string) => Value): (text: string) => Value {
  const values = new Map<string, Value>()
  let size = 0
  return (text) => {
    const known = values.get(text)
    if (known !== undefined || values.has(text)) return known as Value
    const key = flat(text)
    const value = compute(key)
    if (key.length > MAX_LENGTH) return value
    size += key.length + OVERHEAD
    if (size > MAX_SIZE) {
      values.clear()
      size = key.length + OVERHEAD
    }
    values.set(key, value)
    return value
  }
}
