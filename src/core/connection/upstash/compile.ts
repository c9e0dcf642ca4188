/** Assembles compiled scripts from lua/: one Lua text for limits that apply together. lua/README.md explains it. */
import type { lua as parts } from './script-text.ts'

/** The texts of files of lua/, shortened or not. */
export type LuaParts = Pick<
  typeof parts,
  'flag' | 'living' | 'fixed' | 'sliding' | 'bucket' | 'compiled'
>

export interface CompiledLimit {
  /** `[A-Za-z0-9_-]+` */
  tag: string
  algorithm: 'fixed' | 'sliding' | 'bucket'
  limit: number
  window: number
  /** The burst of a bucket, or the alignment of a fixed window. `undefined`: each call has it as an argument. */
  option: string | number | undefined
}

export type Form = 'one' | 'many'

/**
 * Assembles a script. Its first argument is the time; if it is empty or absent, the script reads the clock. For each key and limit follow
 * the cost, with `sendsCosts`, and the option, if it is not fixed.
 * @param sendsCosts false if each limit costs one unit
 */
export function compile(lua: LuaParts, limits: CompiledLimit[], form: Form, sendsCosts: boolean) {
  let place = 1
  const argument = () => {
    place += 1
    return form === 'one' ? `ARGV[${place}]` : `ARGV[OFFSET+${place}]`
  }
  let text = lua.flag
  let states = ''
  const own: Words[] = []
  for (const { tag, algorithm, limit, window, option } of limits) {
    const pattern = tag.replaceAll('-', '%-')
    const last = algorithm === 'sliding' ? ':([^:;]+)' : ''
    const state = `;${pattern}:([^:]+):([^:]+):([^:;]+)${last}`
    states += state
    if (!own.some((other) => other.algorithm === algorithm)) text += lua[algorithm]
    own.push({
      n: `${own.length + 1}`,
      tag,
      pattern,
      state,
      limit: `${limit}`,
      window: `${window}`,
      cost: sendsCosts ? `${argument()}+0` : '1',
      option: option === undefined ? argument() : JSON.stringify(option),
      algorithm,
    })
  }
  const common: Words = { width: `${place - 1}`, states, living: lua.living.trim() }
  const kinds = limits.length > 1 ? [form, 'several'] : [form]
  const parts = lua.compiled.split(/^ *\$(?:each|end)\n/m)
  for (let index = 0; index < parts.length; index += 2) {
    text += filled(parts[index]!, kinds, common)
    for (const words of own)
      text += filled(parts[index + 1] ?? '', [...kinds, words.algorithm!], { ...common, ...words })
  }
  return text
}

type Words = Record<string, string>

/** Fills in the words, and leaves out the lines for other forms and algorithms. */
const filled = (text: string, kinds: string[], words: Words) =>
  text
    .replace(
      /^( *)\$(one|many|several|fixed|sliding|bucket)\b ?(.*\n)/gm,
      (_, space, kind, line) => (kinds.includes(kind) ? space + line : ''),
    )
    .replace(/\$([a-z]+)/g, (_, word) => words[word]!)
