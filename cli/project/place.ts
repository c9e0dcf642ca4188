/** Finds settings in the text of a configuration, so that messages can name their lines. Best effort: the text is not parsed. */
import { existsSync, readFileSync } from 'node:fs'

/** Comments, texts and regular expressions, in which brackets and commas mean nothing. */
const OPAQUE =
  /\/\/.*|\/\*[\s\S]*?\*\/|(['"])(?:\\.|(?!\1)[^\\\n])*\1|`(?:\\[\s\S]|[^\\`])*`|(?<=[=(:,[!&|?{;]\s*)\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\//g

/**
 * The place `file:line:column` of a setting, or of the nearest one around it that the file writes out. The file alone if it has no default
 * export that is an object, or a call with one.
 * @param path as in messages: `policies[1].window`
 */
export function placeOf(file: string, path: string): string {
  const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
  const at = offsetOf(text, path)
  if (at === undefined) return file
  const lines = text.slice(0, at).split('\n')
  return `${file}:${lines.length}:${lines.at(-1)!.length + 1}`
}

function offsetOf(text: string, path: string): number | undefined {
  const plain = text.replace(OPAQUE, (part) =>
    part.replace(/[^\n]/g, /^\/[/*]/.test(part) ? ' ' : '_'),
  )
  const start = /\bexport\s+default\b/.exec(plain)
  let found = start ? openIn(plain, start.index + start[0].length) : undefined
  let value = found
  for (const [segment] of path.matchAll(/"(?:\\.|[^"\\])*"|[^.[\]"]+/g)) {
    const open = value === undefined ? undefined : openIn(plain, value)
    if (open === undefined) break
    const items = itemsIn(plain, open)
    const name = segment.startsWith('"') ? JSON.parse(segment) : segment
    const at =
      plain[open] === '{'
        ? items.find((item) => keyAt(text, item) === name)
        : items.findIndex((item) => plain.startsWith('...', item)) < 0 ||
            items.length <= Number(name)
          ? items[Number(name)]
          : undefined
    if (at === undefined) break
    found = at
    const colon = plain[open] === '{' ? /\s*[\w$]+\s*:/y : /(?:)/y
    colon.lastIndex = at
    value = at + (colon.exec(plain)?.[0].length ?? 0)
  }
  return found
}

/** The `{` or `[` at which a value begins: in the argument of a call, or where a constant is declared. */
function openIn(plain: string, from: number, depth = 0): number | undefined {
  const value = /\s*(?:new\s+)?(?:([\w$.]+)\s*(?:<[^()]*>)?\s*)?([({[]?)/y
  value.lastIndex = from
  const [, name, bracket] = value.exec(plain)!
  const end = value.lastIndex
  if (depth > 20) return undefined
  if (bracket === '(') return openIn(plain, end, depth + 1)
  if (bracket) return name === undefined ? end - 1 : undefined
  const declared =
    name &&
    new RegExp(`\\b(?:const|let|var)\\s+${name.replaceAll('$', '\\$')}\\b[^=\\n]*=`).exec(plain)
  return declared ? openIn(plain, declared.index + declared[0].length, depth + 1) : undefined
}

/** Where the items of an object or a list begin. */
function itemsIn(plain: string, open: number): number[] {
  const items: number[] = []
  let [depth, isNew] = [0, true]
  for (let at = open + 1; at < plain.length && depth >= 0; at++) {
    const character = plain[at]!
    if (/[\])}]/.test(character)) depth -= 1
    else if (isNew && /\S/.test(character) && depth === 0) {
      items.push(at)
      isNew = false
    }
    if (/[[({]/.test(character)) depth += 1
    if (character === ',' && depth === 0) isNew = true
  }
  return items
}

/** The name of a property. */
const keyAt = (text: string, at: number) =>
  /^(?:(['"])(.*?)\1|([\w$]+))/
    .exec(text.slice(at, at + 200))
    ?.slice(2)
    .find(Boolean)
