/** The tokens of Lua 5.1, and the `$` words of compiled.lua. The scripts have no long strings, no long comments and no hexadecimal numbers. */
const TOKEN =
  /--.*|\$[a-z]+|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[A-Za-z_]\w*|\d[\w.]*|\.{2,3}|[=~<>]=|\s+|./g

const KEYWORDS = new Set(
  'and break do else elseif end false for function if in local nil not or repeat return then true until while'.split(
    ' ',
  ),
)
const GLOBALS = new Set(
  'ARGV KEYS OFFSET ipairs math next pairs pcall redis select string table tonumber tostring type unpack _'.split(
    ' ',
  ),
)
const LETTERS = 'abcdefghijklmnopqrstuvwxyz'
const SHORT = ['', ...LETTERS]
  .flatMap((first) => [...LETTERS, ...LETTERS.toUpperCase()].map((last) => first + last))
  .filter((name) => !KEYWORDS.has(name))

/**
 * Shortens a Lua script: removes comments and spaces, and gives variables short names. Lines stay lines, for the line numbers of errors.
 * Each name has one short name in the whole script, so that scopes stay as they are. Names that no function has in common may have the same
 * short name. Fields, globals and `$` words keep their names, also those at the end of a variable: `time$n` becomes `a$n`.
 */
export function minify(lua: string): string {
  const tokens = lua.match(TOKEN)!.filter((token) => !token.startsWith('--'))
  const words = tokens.filter((token) => token.trim())
  const variables = variablesOf(words)
  const short = shortNames(words, variables)

  let text = ''
  let space = ''
  let index = 0
  for (const token of tokens) {
    if (!token.trim()) {
      space += token
      continue
    }
    const word = variables.has(index) ? short.get(token)! : token
    if (space.includes('\n') && text) text += '\n'
    else if (space && /\w\w|\d\.|\.[\d.]|--/.test(text.slice(-1) + word[0])) text += ' '
    text += word
    space = ''
    index += 1
  }
  return `${text}\n`
}

/** A short name for each variable, the shortest for the most frequent ones. */
function shortNames(words: string[], variables: Map<number, number>): Map<string, string> {
  const uses = new Map<string, number[]>()
  for (const [index, place] of variables) {
    const name = words[index]!
    uses.set(name, [...(uses.get(name) ?? []), place])
  }
  const short = new Map<string, string>()
  const taken = new Map<number, Set<string>>()
  for (const [name, places] of [...uses].sort(([, a], [, b]) => b.length - a.length)) {
    const free = SHORT.find((one) => !places.some((place) => taken.get(place)?.has(one)))!
    short.set(name, free)
    for (const place of places) taken.set(place, (taken.get(place) ?? new Set()).add(free))
  }
  return short
}

/**
 * The indexes of variables: names that are neither keywords, globals nor fields (`a.field`, `a:field`, `{ field = 1 }`). With the place of
 * each: the outermost function that it is in, as the index of its first word, or 0.
 */
function variablesOf(words: string[]): Map<number, number> {
  const open: [word: string, index: number][] = []
  const found = new Map<number, number>()
  words.forEach((word, index) => {
    if (/^([([{]|function|if|do|repeat)$/.test(word)) open.push([word, index])
    if (/^([)\]}]|end|until)$/.test(word)) open.pop()
    if (!/^[A-Za-z_]/.test(word) || KEYWORDS.has(word) || GLOBALS.has(word)) return
    const before = words[index - 1] ?? ''
    const isKey = open.at(-1)?.[0] === '{' && /^[{,]$/.test(before) && words[index + 1] === '='
    if (isKey || /^[.:]$/.test(before)) return
    const [, place = 0] = open.find(([one]) => one === 'function') ?? []
    found.set(index, place === index - 1 ? 0 : place) // the name of a function is outside of it
  })
  return found
}
