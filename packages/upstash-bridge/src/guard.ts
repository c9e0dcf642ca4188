import { readFileSync } from 'node:fs'
import type { CommandTable } from './table.ts'

const part = (name: string) => readFileSync(new URL(`./guard/${name}.lua`, import.meta.url), 'utf8')
const COMMON = part('common')
const SCRIPT = part('script')
const LIBRARY = part('library')

/** An additional last argument, by which a guarded function knows that the bridge calls it. */
export const SECRET = 'sluice:count-my-commands'

const LIBRARY_END = '--[[/sluice]]'

/**
 * Puts the guard (guard/script.lua) before a script.
 *
 * @param first the shebang line with its newline, or an empty string
 * @param code the rest of the script
 * @param checked refuse undeclared keys
 */
export function guardScript(first: string, code: string, checked: boolean, table: CommandTable) {
  const known = knownCommands(checked ? code : '', table)
  const other = /\bredis\b(?!\s*\.\s*p?call\b)/.test(code) // redis.error_reply, or redis itself
  const guard = fill(SCRIPT, first !== '', {
    ...known,
    fast: checked ? fastPath(known) : '',
    checked: `${checked}`,
    // Runs before the script, which may edit KEYS.
    declare: checked ? 'declare(keys)' : '',
    proxy: other ? 'setmetatable(proxy, { __index = api })' : 'proxy',
  })
  return `${first}${guard} ${code}\nend return __sluice(__main)`
}

/** Puts the guard (guard/library.lua) before a function library. @param checked refuse undeclared keys */
export function guardLibrary(text: string, checked: boolean, table: CommandTable): string {
  const end = text.indexOf('\n') + 1 // end of the shebang line, which contains the name of the library
  const code = text.slice(end)
  const known = knownCommands(code, table)
  const fast = `if checked then ${fastPath(known)} end`
  const guard = fill(LIBRARY, end > 0, { ...known, fast, checked: `${checked}` })
  return `${text.slice(0, end)}${guard} ${LIBRARY_END} ${code}`
}

export function isGuarded(library: string): boolean {
  return library.includes(LIBRARY_END)
}

/** The text of a library without the guard. */
export function unguardLibrary(text: string): string {
  const [guard, ...code] = text.split(`${LIBRARY_END} `)
  return code.length > 0 ? guard!.slice(0, guard!.indexOf('\n') + 1) + code.join('') : text
}

/** A Lua condition: the key was declared. */
const KNOWN = 'key == k1 or key == k2 or key == k3 or key == k4 or declared and declared[key]'

function fill(template: string, shebang: boolean, values: Record<string, string>): string {
  const all: Record<string, string> = {
    ...values,
    line: shebang ? '2' : '1',
    secret: SECRET,
    known: KNOWN,
  }
  return template
    .replace('$$common$$', () => COMMON)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('-- '))
    .join(' ')
    .replace(/\$\$(\w+)\$\$/g, (_, name: string) => all[name] ?? '')
}

/** Lua conditions for the commands that appear in quotes in the code. Comparing with constants costs less than a table. */
function knownCommands(code: string, table: CommandTable) {
  const none = ['false']
  const one = ['false']
  const ranges: string[] = []
  for (const word of new Set([...code.matchAll(/["']([A-Za-z][\w.-]*)["']/g)].map((m) => m[1]!))) {
    const keys = table.get(word.toLowerCase())
    const same = `name == '${word}'`
    if (keys === 'none') none.push(same)
    else if (typeof keys !== 'object') continue
    else if (keys.first === 1 && keys.last === 1) one.push(same)
    else {
      // The command's name is Lua's argument 1, so Redis's position 1 is Lua's 2.
      const last = keys.last < 0 ? keys.last : keys.last + 1
      ranges.push(
        `elseif ${same} then first, last, step = ${keys.first + 1}, ${last}, ${keys.step}`,
      )
    }
  }
  return { none: none.join(' or '), one: one.join(' or '), ranges: ranges.join(' ') }
}

/** Lua code that skips the check for the most common command: one with a single key, which was declared. */
function fastPath({ none, one }: { none: string; one: string }): string {
  return `local name, key = ... if not ((${one}) and (${KNOWN}) or ${none}) then check(...) end`
}
