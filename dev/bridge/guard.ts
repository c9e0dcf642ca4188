import { readFileSync } from 'node:fs'
import type { CommandTable } from './table.ts'

const part = (name: string) => readFileSync(new URL(`./guard/${name}.lua`, import.meta.url), 'utf8')
const COMMON = part('common')
const SCRIPT = part('script')
const LIBRARY = part('library')

/** The argument by which a guarded function knows that the bridge is calling. */
export const SECRET = 'sluice:count-my-commands'

const LIBRARY_END = '--[[/sluice]]'

/**
 * The script with the guard before it: guard/script.lua.
 *
 * @param first the shebang line with its newline, or nothing
 * @param code what follows it
 * @param checked whether undeclared keys are refused
 */
export function guardScript(first: string, code: string, checked: boolean, table: CommandTable) {
  const guard = fill(SCRIPT, first !== '', code, checked, table)
  return `${first}${guard} ${code}\nend return __sluice(__main)`
}

/** The function library with the guard before it: guard/library.lua. */
export function guardLibrary(text: string, table: CommandTable): string {
  const end = text.indexOf('\n') + 1 // of the shebang, which names the library
  const code = text.slice(end)
  return `${text.slice(0, end)}${fill(LIBRARY, end > 0, code, true, table)} ${LIBRARY_END} ${code}`
}

export function isGuarded(library: string): boolean {
  return library.includes(LIBRARY_END)
}

/** A library's text as its author wrote it. */
export function unguardLibrary(text: string): string {
  const [guard, ...code] = text.split(`${LIBRARY_END} `)
  return code.length > 0 ? guard!.slice(0, guard!.indexOf('\n') + 1) + code.join('') : text
}

function fill(
  outer: string,
  shebang: boolean,
  code: string,
  checked: boolean,
  table: CommandTable,
) {
  const values: Record<string, string> = {
    known: checked ? known(code, table) : '',
    line: shebang ? '2' : '1',
    checked: `${checked}`,
    secret: SECRET,
  }
  return outer
    .replace('$$common$$', () => COMMON)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('-- '))
    .join(' ')
    .replace(/\$\$(\w+)\$\$/g, (_, name: string) => values[name] ?? '')
}

/** The commands that the code names in quotes, told apart by constants: a look-up costs nothing. */
function known(code: string, table: CommandTable): string {
  const by = { none: [] as string[], first: [] as string[], ranges: [] as string[] }
  for (const word of new Set([...code.matchAll(/["']([A-Za-z][\w.-]*)["']/g)].map((m) => m[1]!))) {
    const keys = table.get(word.toLowerCase())
    const same = `name == '${word}'`
    if (keys === 'none') by.none.push(same)
    if (typeof keys !== 'object') continue
    const { first, last, step } = keys
    if (first === 1 && last === 1) by.first.push(same)
    // The command's name is Lua's argument 1, so Redis's position 1 is Lua's 2.
    else
      by.ranges.push(
        when([same], `range(${first + 1}, ${last < 0 ? last : last + 1}, ${step}, ...)`),
      )
  }
  return [when(by.first, 'examine(key)'), when(by.none, ''), ...by.ranges].join(' ')
}

function when(conditions: string[], action: string): string {
  return conditions.length > 0 ? `if ${conditions.join(' or ')} then return ${action} end` : ''
}
