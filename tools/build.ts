import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const root = fileURLToPath(new URL('..', import.meta.url))
/** The entry of wrangler, to run with this Node. */
export const wrangler = join(
  dirname(createRequire(import.meta.url).resolve('wrangler/package.json')),
  'bin/wrangler.js',
)

/** The compatibility date of wrangler.toml. */
export const compatibilityDate = /^compatibility_date = "(.*)"$/m.exec(
  readFileSync(join(root, 'wrangler.toml'), 'utf8'),
)![1]!

/**
 * Builds a Worker as for a deployment, with `wrangler deploy --dry-run`.
 * @param outdir the folder for the modules
 * @param entry defaults to `main` of wrangler.toml
 * @param project the folder of wrangler.toml; defaults to this repository
 * @throws Error with the output of wrangler
 */
export async function build(outdir: string, entry?: string, project = root): Promise<void> {
  const args = ['deploy', ...(entry ? [entry] : []), '--dry-run', '--outdir', outdir]
  await promisify(execFile)(process.execPath, [wrangler, ...args], {
    cwd: project,
    env: { ...process.env, WRANGLER_SEND_METRICS: 'false', WRANGLER_LOG: 'error' },
  }).catch((error) => {
    throw new Error(
      `wrangler could not build ${entry ?? 'the Worker'}:\n${error.stdout}${error.stderr}`,
    )
  })
}

/** The modules of a built Worker, in the form that Miniflare expects. */
export interface BuiltModules {
  mainModule: string
  modules: Record<string, { type: 'esm'; contents: string }>
}

export async function readModules(outdir: string): Promise<BuiltModules> {
  const names = (await readdir(outdir, { recursive: true })).filter((name) => name.endsWith('.js'))
  const modules: BuiltModules['modules'] = {}
  let mainModule = ''
  for (const name of names) {
    if (!(await stat(join(outdir, name))).isFile()) continue
    const path = relative(outdir, join(outdir, name))
    mainModule = path
    modules[path] = { type: 'esm', contents: await readFile(join(outdir, name), 'utf8') }
  }
  return { mainModule, modules }
}
