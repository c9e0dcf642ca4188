import { createHash } from 'node:crypto'
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
  rest: [
    'sliding_log',
    'concurrency',
    'apart',
    'penalty',
    'override',
    'operators',
    'idempotency',
    'decide',
  ],
  compiled: ['compiled'],
}

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
  const parts = Object.entries(PARTS).map(([name, files]) => {
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
  const lines = Object.keys(parts).map(
    (name, index) => `  ${name}: ${JSON.stringify(short[index])},`,
  )
  const script = flag + short.slice(0, -1).join('')
  const order = ['flag', ...Object.keys(parts).slice(0, -1)]
  const sha = createHash('sha1').update(script).digest('hex')
  return `// Generated from lua/ by \`npm run lua\`.

/** The parts of the scripts, shortened. */
export const lua = {
  flag: ${JSON.stringify(flag)},
${lines.join('\n')}
}

/** The general script. */
export const script = /* @__PURE__ */ [
${order.map((name) => `  lua.${name},`).join('\n')}
].join('')

/** The SHA-1 by which Redis knows the general script. */
export const scriptSha = '${sha}'
`
}

/** For a bundler: the module of generated Lua if this is its path, from the current files; `undefined` for any other path. */
export const luaModule = (path: string, edit = unchanged): string | undefined =>
  path === fileURLToPath(moduleFile) ? scriptModule(edit) : undefined
