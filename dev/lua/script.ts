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
export const moduleFile = new URL('../../src/store/upstash/script-text.ts', import.meta.url)

/** The module of `sluice/shards`, with scripts of their own. `npm run lua` writes it, too. */
export const moveModuleFile = new URL('../../src/shards/move/script-text.ts', import.meta.url)

const read = (file: string) => readFileSync(new URL(`../../lua/${file}`, import.meta.url), 'utf8')

type Edit = (text: string, file: string) => string
const unchanged: Edit = (text) => text

// Upstash reads the flag only at the very beginning.
const FLAG = '#!lua flags=allow-key-locking\n'

const scriptOf = (files: string[], edit: Edit) =>
  FLAG + minify(files.map((file) => edit(read(file), file)).join(''))

const sha1 = (text: string) => createHash('sha1').update(text).digest('hex')

/**
 * The text of the module that contains the script.
 * @param edit changes the text of a file, for mutation tests
 */
export function scriptModule(edit = unchanged): string {
  const script = scriptOf(FILES, edit)
  return `// Generated from lua/ by \`npm run lua\`.

/** The whole script, shortened. */
export const script = ${JSON.stringify(script)}

/** The SHA-1 by which Redis knows the script. */
export const scriptSha = '${sha1(script)}'
`
}

/** The text of the module that contains the scripts of `sluice/shards`. */
export function moveModule(edit = unchanged): string {
  const guard = scriptOf(['move/guard.lua'], edit).slice(FLAG.length)
  const guarded = scriptOf(FILES, edit).replace(FLAG, () => FLAG + guard)
  const [depart, arrive, settle] = ['depart', 'arrive', 'settle'].map((name) =>
    scriptOf([`move/${name}.lua`], edit),
  )
  return `// Generated from lua/ by \`npm run lua\`.

/** Precedes the script at an old shard, after the first line. */
export const guard = ${JSON.stringify(guard)}

/** The SHA-1 of the script with the guard. */
export const guardedSha = '${sha1(guarded)}'

export const depart = ${JSON.stringify(depart)}

export const arrive = ${JSON.stringify(arrive)}

export const settle = ${JSON.stringify(settle)}
`
}

/** For a bundler: the module of generated Lua with this path, from the current files; `undefined` for any other path. */
export function luaModule(path: string, edit = unchanged): string | undefined {
  if (path === fileURLToPath(moduleFile)) return scriptModule(edit)
  return path === fileURLToPath(moveModuleFile) ? moveModule(edit) : undefined
}
