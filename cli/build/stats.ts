/** What a bundle with a built configuration consists of. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { bundle, type Plugin } from '../project/bundle.ts'
import { packageManagerOf } from '../project/package-manager.ts'
import { rootOf } from '../project/root.ts'
import { esbuildOf } from '../project/tools.ts'
import { readWrangler } from '../project/wrangler-config.ts'
import { moduleOf, type Source } from './module.ts'

/** What a bundle contains, and its size in bytes: minified and compressed. */
type Part = [name: string, bytes: number]

/** What one bundle is made without. */
interface Without {
  /** The module of the configuration without a part. */
  source?: Partial<Source>
  /** A feature of `use`. */
  feature?: string
  /** Modules that stay outside. */
  external?: RegExp
}

/** The functions of hosts that are no Worker, for a bundle of their own. */
const ENTRIES = {
  gateway: "import { createGateway as host } from 'sluice/built'",
  app: "import { rateLimiter as host } from 'sluice/built'",
  node: "import { rateLimiter as host } from 'sluice/built/node'",
  next: "import { rateLimitProxy as host } from 'sluice/built/next'",
  limits: "import { limits as host } from 'sluice/built/limits'",
}

/**
 * Bundles the Worker of a project that imports the module, otherwise its host alone, with and without each part.
 * @param out the module
 * @param wrangler the configuration of wrangler, which may not exist
 * @throws Error if the project has no esbuild
 */
export async function partsOf(
  source: Source,
  out: string,
  wrangler: string,
  host: keyof typeof ENTRIES,
): Promise<Part[]> {
  const project = rootOf(out)
  if (!esbuildOf(project))
    throw new Error(`--stats needs esbuild: ${packageManagerOf(project).add} esbuild`)
  const worker = await readWrangler(dirname(wrangler)).catch(() => undefined)
  const isImported = worker && /\bsluice\.built\b/.test(readFileSync(worker.main, 'utf8'))
  const main = join(dirname(out), 'entry.ts')
  const plain = { main, rules: [], compatibilityFlags: ['nodejs_compat'], define: {}, alias: {} }
  const settings: Parameters<typeof bundle>[1] = isImported ? worker : plain
  const entry = isImported
    ? undefined
    : `${ENTRIES[host]}\nimport config from './sluice.built.ts'\nexport default host(config)`

  async function sizeOf(without: Without = {}): Promise<number> {
    const define = { ...settings.define, 'process.env.NODE_ENV': '"production"' }
    const plugin = leavingOut(without, source, out, entry)
    const options = { minify: true, plugins: [plugin] }
    const { script } = await bundle(project, { ...settings, define }, {}, options)
    return gzipSync(script, { level: 9 }).length
  }

  const all = await sizeOf()
  const partWithout = async (name: string, without: Without): Promise<Part> => [
    name,
    all - (await sizeOf(without)),
  ]
  const { config, options, needed = [] } = source
  const parts: Part[] = [
    ['your code, with its packages', await sizeOf({ external: /^sluice(\/|$)/ })],
  ]
  for (const name of needed)
    parts.push(
      await partWithout(name, { source: { needed: needed.filter((one) => one !== name) } }),
    )
  for (const { name } of config.use) {
    const use = config.use.filter((one) => one.name !== name)
    const without = { source: { config: { ...config, use } }, feature: name }
    parts.push(await partWithout(`${name}()`, without))
  }
  if (options.headers !== undefined)
    parts.push(
      await partWithout('headers', { source: { options: { ...options, headers: 'off' } } }),
    )
  if (config.live)
    parts.push(
      await partWithout('parser of live policies', { external: /^sluice\/built\/parser$/ }),
    )
  const rest = parts.reduce((left, [, bytes]) => left - bytes, all)
  const sorted = parts.sort(([, one], [, other]) => other - one)
  return [['Sluice without features', rest], ...sorted, ['all', all]]
}

const OWN = 'stats'

/** A plugin of esbuild that leaves a part out of a bundle. */
const leavingOut = (
  { source, feature, external }: Without,
  whole: Source,
  out: string,
  entry: string | undefined,
): Plugin => ({
  name: OWN,
  setup(build) {
    const own = (path: string) => ({ path, namespace: OWN })
    if (external) build.onResolve({ filter: external }, ({ path }) => ({ path, external: true }))
    if (entry !== undefined)
      build.onResolve({ filter: /.*/ }, ({ kind }) =>
        kind === 'entry-point' ? own('entry') : undefined,
      )
    build.onResolve({ filter: /\bsluice\.built(\.[jt]s)?$/ }, () => own('module'))
    if (feature !== undefined)
      build.onResolve({ filter: /^sluice\/features$/ }, ({ namespace }) =>
        namespace === OWN ? undefined : own('features'),
      )
    const texts: Record<string, string> = {
      entry: entry ?? '',
      module: moduleOf({ ...whole, ...source }),
      features: `export * from 'sluice/features'
export const ${feature} = () => ({ name: '${feature}', compile: () => ({}) })`,
    }
    build.onLoad({ filter: /.*/, namespace: OWN }, ({ path }) => ({
      contents: texts[path]!,
      resolveDir: dirname(out),
    }))
  },
})
