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
 * @throws Error with the file, line and column of the first error
 */
export async function bundle(
  project: string,
  { main, rules, compatibilityFlags, define, alias }: WranglerConfig,
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
  })
  const files = Object.keys(metafile!.inputs).map((file) => join(project, file))
  return { script: outputFiles[0]!.text, files }
}

/** The folders of the source files of a bundle, without packages. */
export const foldersOf = (files: string[]): string[] => [
  ...new Set(files.filter((file) => !file.includes('/node_modules/')).map(dirname)),
]
