import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { minify } from './minify.ts'

/** The files of `lua/`, in the order in which the script joins them. */
const FILES = [
  'call',
  'records',
  'fixed_window',
  'sliding_window',
  'token_bucket',
  'sliding_log',
  'concurrency',
  'apart',
  'penalty',
  'override',
  'operators',
  'idempotency',
  'decide',
].map((name) => `${name}.lua`)

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

/**
 * The text of the module that contains the script.
 * @param edit changes the text of a file, for mutation tests
 */
export function scriptModule(edit = unchanged): string {
  const script = FLAG + minify(FILES.map((file) => edit(read(file), file)).join(''))
  const sha = createHash('sha1').update(script).digest('hex')
  return `// Generated from lua/ by \`npm run lua\`.

/** The whole script, shortened. */
export const script = ${JSON.stringify(script)}

/** The SHA-1 by which Redis knows the script. */
export const scriptSha = '${sha}'
`
}

/** For a bundler: the module of generated Lua if this is its path, from the current files; `undefined` for any other path. */
export const luaModule = (path: string, edit = unchanged): string | undefined =>
  path === fileURLToPath(moduleFile) ? scriptModule(edit) : undefined
