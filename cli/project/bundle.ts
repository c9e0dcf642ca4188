import { builtinModules } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { esbuildOf, missingWrangler, runEsbuild } from './tools.ts'
import type { WranglerConfig } from './wrangler-config.ts'

/** A bundled Worker and its source files. */
export interface Bundle {
  script: string
  files: string[]
}

/** The types of modules that wrangler knows without a rule, and esbuild's names of the types. */
const LOADERS = { '.txt': 'text', '.html': 'text', '.sql': 'text', '.bin': 'binary' }
const TYPES: Record<string, string> = { Text: 'text', Data: 'binary', ESModule: 'js' }

/** The loaders that rules of wrangler such as `**\/*.lua` describe, by file extension. */
const loadersOf = (rules: WranglerConfig['rules']) =>
  Object.fromEntries(
    rules.flatMap(({ type, globs }) =>
      globs.flatMap((glob) => {
        const [extension] = /\.\w+$/.exec(glob) ?? []
        return extension && TYPES[type] ? [[extension, TYPES[type]]] : []
      }),
    ),
  )

/**
 * Bundles the Worker of a project as `wrangler deploy` does, without minifying it.
 * @param observe the module with `observe`, to count requests if the configuration does not
 * @throws Error with the file, line and column of the first error
 */
export async function bundle(
  project: string,
  { main, rules, compatibilityFlags, define, alias }: WranglerConfig,
  observe?: string,
): Promise<Bundle> {
  const esbuild = esbuildOf(project)
  if (!esbuild) throw missingWrangler()
  const nodeModules = compatibilityFlags.some((flag) => flag.startsWith('nodejs_compat'))
    ? builtinModules.filter((name) => !name.startsWith('node:'))
    : []
  const { outputFiles, metafile } = await runEsbuild(esbuild, relative(project, main), {
    absWorkingDir: project,
    target: 'es2024',
    conditions: ['workerd', 'worker', 'browser'],
    loader: { ...LOADERS, ...loadersOf(rules) },
    external: ['cloudflare:*', 'node:*'],
    alias: { ...Object.fromEntries(nodeModules.map((name) => [name, `node:${name}`])), ...alias },
    define,
    plugins: observe ? [observed(observe)] : [],
  })
  const inputs = Object.keys(metafile!.inputs).filter((file) => !file.startsWith(`${OBSERVED}:`))
  const files = inputs.map((file) => join(project, file))
  return { script: outputFiles[0]!.text, files }
}

const OBSERVED = 'observed'

/** The part of esbuild's plugins that Sluice uses. */
interface PluginBuild {
  onResolve(
    options: { filter: RegExp },
    resolve: (of: Record<'path' | 'resolveDir' | 'namespace', string>) => object | undefined,
  ): void
  onLoad(
    options: { filter: RegExp; namespace: string },
    load: (of: { path: string }) => { resolveDir: string; contents: string },
  ): void
}

/** A plugin of esbuild that adds `observe` to the default export of sluice.config.ts. */
const observed = (observe: string) => ({
  name: OBSERVED,
  setup(build: PluginBuild) {
    build.onResolve({ filter: /\bsluice\.config\.ts$/ }, ({ path, resolveDir, namespace }) =>
      namespace === OBSERVED ? undefined : { path: join(resolveDir, path), namespace: OBSERVED },
    )
    build.onLoad({ filter: /.*/, namespace: OBSERVED }, ({ path }) => ({
      resolveDir: dirname(path),
      contents: `import config from ${JSON.stringify(path)}
import { observe } from ${JSON.stringify(observe)}
const use = config.use ?? []
export default { ...config, use: use.some(({ name }) => name === 'observe') ? use : [...use, observe()] }`,
    }))
  },
})

/** The folders of the source files of a bundle, without packages. */
export const foldersOf = (files: string[]): string[] => [
  ...new Set(files.filter((file) => !file.includes('/node_modules/')).map(dirname)),
]
