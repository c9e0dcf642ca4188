/**
 * What servers read in different ways in a valid JSON text, if anything: of two members with one name, some parsers use the first and some
 * the last (RFC 8259, 4). Scans each character once; a regular expression could take quadratic time.
 */
export function jsonFlaw(text: string, maxLevels: number): string | undefined {
  /** The names in each open object, and `undefined` for each open list. */
  const open: (Set<string> | undefined)[] = []
  let expectsName = false
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index]!
    if (character === '{' || character === '[') {
      expectsName = character === '{'
      open.push(expectsName ? new Set() : undefined)
      if (open.length > maxLevels) return `more than ${maxLevels} levels`
    } else if (character === '}' || character === ']') {
      expectsName = false
      open.pop()
    } else if (character === ',') expectsName = open.at(-1) !== undefined
    else if (character === '"') {
      const start = index
      while (text[++index] !== '"') if (text[index] === '\\') index += 1
      if (!expectsName) continue
      expectsName = false
      const names = open.at(-1)!
      const name: string = JSON.parse(text.slice(start, index + 1))
      if (names.has(name)) return `two members ${JSON.stringify(name.slice(0, 64))} in one object`
      names.add(name)
    }
  }
  return undefined
}
