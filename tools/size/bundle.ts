import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type InputOptions, rolldown } from 'rolldown'
import { build } from '../build.ts'
import type { SizeLimit } from './limits.ts'
import type { Script } from './shares.ts'

/** How a bundler resolves the imports of a Worker. */
const worker: InputOptions = {
  platform: 'neutral',
  resolve: {
    conditionNames: ['workerd', 'worker', 'browser', 'import', 'default'],
    mainFields: ['module', 'main'],
  },
}

/** The tools of a project, which are not part of the package. */
const tools = /^(wrangler|miniflare|esbuild|vitest|@redis\/client)(\/|$)/

const dist = fileURLToPath(new URL('../../dist/', import.meta.url))

/** Bundles a part of the package as a project does, or the Worker as for a deployment. */
export const bundleOf = (part: Omit<SizeLimit, 'name' | 'maxKiB'> = {}) =>
  part.file ? bundleEntry({ ...part, file: part.file }) : bundleWorker()

async function bundleWorker(): Promise<Script> {
  const outdir = await mkdtemp(join(tmpdir(), 'sluice-'))
  try {
    await build(outdir)
    const file = join(outdir, 'worker.js')
    return { code: await readFile(file, 'utf8'), map: await readFile(`${file}.map`, 'utf8') }
  } finally {
    await rm(outdir, { recursive: true })
  }
}

type Entry = Pick<SizeLimit, 'exports' | 'node' | 'parts'> & { file: string }

async function bundleEntry({ file, exports, node, parts }: Entry): Promise<Script> {
  const bundle = await rolldown({
    input: exports ? 'entry' : dist + file,
    external: [/^node:/, /^hono/, /\/dist\/shared\/hono\.js$/, tools],
    ...(node ? { platform: 'node' } : worker),
    logLevel: 'silent',
    plugins: [
      {
        name: 'entry',
        resolveId: (id) => (id === 'entry' ? '\0entry' : undefined),
        async load(id) {
          if (id === '\0entry') {
            const own = `export { ${exports} } from '${dist}${file}'\n`
            return parts ? `${own}export { ${parts} } from '${dist}built.js'` : own
          }
          if (!existsSync(`${id}.map`)) return
          // The source map names the modules from which the package was built.
          return { code: await readFile(id, 'utf8'), map: await readFile(`${id}.map`, 'utf8') }
        },
      },
    ],
  })
  const { output } = await bundle.generate({
    minify: true,
    comments: false,
    codeSplitting: false,
    sourcemap: true,
  })
  await bundle.close()
  const [{ code, map, imports }] = output
  const missing = imports.filter((id) => !/^(node|cloudflare):|hono/.test(id) && !tools.test(id))
  if (missing.length > 0) throw new Error(`The size leaves out ${missing.join(', ')}.`)
  return { code: code.replace(/\n\/\/# sourceMappingURL=.*\s*$/, ''), map: map!.toString() }
}
