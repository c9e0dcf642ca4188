import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { minify } from './minify.ts'

/** The parts of the scripts, by their name in the module: files of `lua/`, in the order in which the general script joins them. */
const PARTS = {
  head: ['call', 'records'],
  living: ['living'],
  fixed: ['fixed_window'],
  sliding: ['sliding_window'],
  bucket: ['token_bucket'],
  decide: ['decide'],
  compiled: ['compiled'],
}

/** The parts of features and of the decision API, each from the file of its name. A script has those that its limiter needs, in any order. */
const FEATURES = Object.fromEntries(
  [
    'apart',
    'concurrency',
    'distinct',
    'idempotency',
    'line',
    'operators',
    'override',
    'penalty',
    'sliding_log',
  ].map((name) => [name, [name]]),
)

/** The module that contains the script. `npm run lua` writes it. */
export const moduleFile = new URL(
  '../../src/core/connection/upstash/script-text.ts',
  import.meta.url,
)

const read = (file: string) => readFileSync(new URL(`../../lua/${file}`, import.meta.url), 'utf8')

type Edit = (text: string, file: string) => string
const unchanged: Edit = (text) => text

// Upstash reads the flag only at the very beginning.
const FLAG = '#!lua flags=allow-key-locking\n'

/** The parts of the scripts with their comments. */
export function luaParts(edit = unchanged): Record<keyof typeof PARTS | 'flag', string> {
  const parts = Object.entries({ ...PARTS, ...FEATURES }).map(([name, files]) => {
    const texts = files.map((name) => edit(read(`${name}.lua`), `${name}.lua`))
    return [name, texts.join('')]
  })
  return { flag: FLAG, ...Object.fromEntries(parts) }
}

/**
 * The text of the module that contains the scripts.
 * @param edit changes the text of a file, for mutation tests
 */
export function scriptModule(edit = unchanged): string {
  const { flag, ...parts } = luaParts(edit)
  // All files are shortened together, so that they use the same short names.
  const short = minify(Object.values(parts).join('$part\n')).split('$part\n')
  const texts = Object.keys(parts).map(
    (name, index) => [name, JSON.stringify(short[index])] as const,
  )
  const core = texts.filter(([name]) => name in PARTS)
  const features = texts.filter(([name]) => name in FEATURES)
  return `// Generated from lua/ by \`npm run lua\`.

/** The parts of the scripts, shortened. */
export const lua = {
  flag: ${JSON.stringify(flag)},
${core.map(([name, text]) => `  ${name}: ${text},`).join('\n')}
}
${features.map(([name, text]) => `\nexport const ${name} = ${text}\n`).join('')}
/** The general script, with the parts of features. */
export const generalScript = (parts: readonly { text: string }[]) =>
  [lua.flag, ${Object.keys(PARTS)
    .slice(0, -2)
    .map((name) => `lua.${name}`)
    .join(', ')}, ...parts.map(({ text }) => text), lua.decide].join('')
`
}

/** The module that contains the script of the list of bans. `npm run lua` writes it. */
export const banListFile = new URL('../../src/features/bans/script-text.ts', import.meta.url)

/** The text of the module that contains the script of the list of bans. */
export const banListModule = (
  edit = unchanged,
): string => `// Generated from lua/ by \`npm run lua\`.

/** The script of the list of bans, shortened. */
export const banListScript =
  ${JSON.stringify(FLAG + minify(edit(read('ban_list.lua'), 'ban_list.lua')))}
`

/** The modules of generated Lua, with the function that makes the text of each. */
export const luaModules: [file: URL, text: (edit?: Edit) => string][] = [
  [moduleFile, scriptModule],
  [banListFile, banListModule],
]

/** For a bundler: the module of generated Lua if this is its path, from the current files; `undefined` for any other path. */
export function luaModule(path: string, edit = unchanged): string | undefined {
  const found = luaModules.find(([file]) => path === fileURLToPath(file))
  return found?.[1](edit)
}
