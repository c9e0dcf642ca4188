import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { delimiter, dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { bundle } from '../cli/project/bundle.ts'

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
 * Builds the Worker as for a deployment, with `wrangler deploy --dry-run`.
 * @param outdir the folder for the modules
 * @throws Error with the output of wrangler
 */
export async function build(outdir: string): Promise<void> {
  const args = ['deploy', '--dry-run', '--outdir', outdir]
  await promisify(execFile)(process.execPath, [wrangler, ...args], {
    cwd: root,
    env: {
      ...process.env,
      // The command that builds the configuration then runs in this Node.
      PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}`,
      WRANGLER_SEND_METRICS: 'false',
      WRANGLER_LOG: 'error',
    },
  }).catch((error) => {
    throw new Error(`wrangler could not build the Worker:\n${error.stdout}${error.stderr}`)
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

/**
 * Bundles another Worker of this repository, as `sluice dev` does. wrangler needs ten times as long.
 * @param main its file, from the root
 */
export async function bundled(main: string, minify = false): Promise<BuiltModules> {
  const settings = { rules: [], compatibilityFlags: [], define: {}, alias: {} }
  const { script } = await bundle(root, { main: join(root, main), ...settings }, {}, { minify })
  return { mainModule: 'worker.js', modules: { 'worker.js': { type: 'esm', contents: script } } }
}

/** Writes the bundle of another Worker into a folder. */
export async function buildEntry(outdir: string, main: string): Promise<void> {
  const { mainModule, modules } = await bundled(main, true)
  await mkdir(outdir, { recursive: true })
  await writeFile(join(outdir, mainModule), modules[mainModule]!.contents)
}
