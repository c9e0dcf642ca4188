import { builtinModules } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { esbuildOf, missingWrangler, runEsbuild } from './tools.ts'
import type { WranglerConfig } from './wrangler-config.ts'

/** A bundled Worker and its source files. */
export interface Bundle {
  script: string
  files: string[]
  /** The names that the Worker exports. */
  exports: string[]
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

/** What `sluice dev` adds to a Worker: names of modules. */
export interface Additions {
  /** The module with `observe`, to count requests if the configuration does not. Defaults to none. */
  observe?: string
  /** The module with `durableObjects` and `SluiceSubject`, to count in Durable Objects. Defaults to the store of the configuration. */
  objects?: string
}

/** The module of `sluice build`, which is written before the Worker that imports it is bundled. */
interface Building extends Additions {
  built?: { file: string; write: () => Promise<unknown> } | undefined
}

/**
 * Bundles the Worker of a project as `wrangler deploy` does.
 * @throws Error with the file, line and column of the first error
 */
export async function bundle(
  project: string,
  {
    main,
    rules,
    compatibilityFlags,
    define,
    alias,
  }: Pick<WranglerConfig, 'main' | 'rules' | 'compatibilityFlags' | 'define' | 'alias'>,
  additions: Building = {},
  { minify = false, plugins = [] }: { minify?: boolean; plugins?: Plugin[] } = {},
): Promise<Bundle> {
  const esbuild = esbuildOf(project)
  if (!esbuild) throw missingWrangler(project)
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
    minify,
    plugins: [adding(additions, main), ...plugins],
  })
  const inputs = Object.keys(metafile.inputs).filter((file) => !file.startsWith(`${ADDED}:`))
  const files = inputs.map((file) => join(project, file))
  const exports = Object.values(metafile.outputs).flatMap((one) => one.exports)
  return { script: outputFiles[0]!.text, files, exports }
}

const ADDED = 'added'

/** A plugin of esbuild, as far as Sluice uses it. */
export interface Plugin {
  name: string
  setup(build: PluginBuild): void
}

type Import = Record<'path' | 'importer' | 'resolveDir' | 'namespace' | 'kind', string>

/** The part of esbuild's plugins that Sluice uses. */
interface PluginBuild {
  onResolve(
    options: { filter: RegExp },
    resolve: (of: Import) => object | undefined | Promise<object | undefined>,
  ): void
  resolve(path: string, from: Omit<Import, 'path'>): Promise<object>
  onLoad(
    options: { filter: RegExp; namespace: string },
    load: (of: { path: string }) => { resolveDir: string; contents: string },
  ): void
}

/**
 * A plugin of esbuild that adds to the default export of sluice.config.ts and of sluice.built.ts, and the class of objects to the exports
 * of the Worker.
 */
const adding = ({ observe, objects, built }: Building, main: string): Plugin => ({
  name: ADDED,
  setup(build) {
    build.onResolve(
      { filter: /\bsluice\.(config|built)(\.[jt]s)?$/ },
      async ({ path, namespace, ...from }) => {
        const file = built && BUILT.test(path) ? built.file : undefined
        // By its path, because esbuild may have listed the folder before the module was written.
        if (namespace === ADDED) return file && { path: file }
        if (file) await built?.write().catch(() => {}) // its caller awaits it, too
        // The module compares the configuration with that of its build.
        if (!(observe || objects) || BUILT.test(from.importer)) return file && { path: file }
        if (file) return { path: file, namespace: ADDED }
        return { ...(await build.resolve(path, { ...from, namespace: ADDED })), namespace: ADDED }
      },
    )
    if (objects) {
      build.onResolve({ filter: /.*/ }, ({ kind }) =>
        kind === 'entry-point' ? { path: main, namespace: ADDED } : undefined,
      )
    }
    build.onLoad({ filter: /.*/, namespace: ADDED }, ({ path }) => ({
      resolveDir: dirname(path),
      contents: path === main ? withClass(main, objects!) : withFields(path, observe, objects),
    }))
  },
})

const withClass = (main: string, objects: string) => `export * from ${JSON.stringify(main)}
export { default } from ${JSON.stringify(main)}
export { SluiceSubject } from ${JSON.stringify(objects)}`

const BUILT = /\bsluice\.built(\.[jt]s)?$/

function withFields(path: string, observe: string | undefined, objects: string | undefined) {
  const isBuilt = BUILT.test(path)
  const lines = [
    `import written from ${JSON.stringify(path)}`,
    `export * from ${JSON.stringify(path)}`,
    `const config = written${isBuilt ? '.config' : ''}`,
    'const use = config.use ?? []',
    'const has = (name) => use.some((one) => one.name === name)',
  ]
  if (observe) lines.push(`import { observe } from ${JSON.stringify(observe)}`)
  if (objects) lines.push(`import { durableObjects } from ${JSON.stringify(objects)}`)
  const used = observe ? `has('observe') ? use : [...use, observe()]` : 'use'
  const store = objects ? ', store: durableObjects()' : ''
  const added = `{ ...config, use: ${used}${store} }`
  const all = isBuilt ? `{ ...written, config: ${added} }` : added
  return [...lines, `export default ${all}`].join('\n')
}
