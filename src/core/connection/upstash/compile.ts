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
  const width = limits.reduce(
    (sum, { option }) => sum + (sendsCosts ? 1 : 0) + (option === undefined ? 1 : 0),
    0,
  )
  let place = 1
  const argument = () => {
    place += 1
    return form === 'one' ? `ARGV[${place}]` : `ARGV[OFFSET+${place}]`
  }
  const states = limits.map(stateOf)
  const common: Words = { width: `${width}`, states: states.join(''), living: lua.living.trim() }
  const own = limits.map(
    ({ tag, algorithm, limit, window, option }, index): Words => ({
      n: `${index + 1}`,
      tag,
      pattern: patternOf(tag),
      state: states[index]!,
      limit: `${limit}`,
      window: `${window}`,
      cost: sendsCosts ? `${argument()}+0` : '1',
      option: option === undefined ? argument() : JSON.stringify(option),
      algorithm,
    }),
  )
  const kinds = limits.length > 1 ? [form, 'several'] : [form]
  const algorithms = new Set(limits.map(({ algorithm }) => algorithm))
  const text = lua.compiled
    .split(/^ *\$(?:each|end)\n/m)
    .map((part, index) =>
      index % 2 === 0
        ? filled(part, kinds, common)
        : own
            .map((words) => filled(part, [...kinds, words.algorithm!], { ...common, ...words }))
            .join(''),
    )
    .join('')
  return lua.flag + [...algorithms].map((name) => lua[name]).join('') + text
}

type Words = Record<string, string>

const patternOf = (tag: string) => tag.replaceAll('-', '%-')

const stateOf = ({ tag, algorithm }: CompiledLimit) =>
  `;${patternOf(tag)}:([^:]+):([^:]+):([^:;]+)${algorithm === 'sliding' ? ':([^:;]+)' : ''}`

/** Fills in the words, and leaves out the lines for other forms and algorithms. */
const filled = (text: string, kinds: string[], words: Words) =>
  text
    .replace(
      /^( *)\$(one|many|several|fixed|sliding|bucket)\b ?(.*\n)/gm,
      (_, space, kind, line) => (kinds.includes(kind) ? space + line : ''),
    )
    .replace(/\$([a-z]+)/g, (_, word) => words[word]!)
