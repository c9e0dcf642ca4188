import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

interface Message {
  text: string
  location: { file: string; line: number; column: number } | null
}
interface Esbuild {
  build(options: object): Promise<{
    outputFiles: { text: string }[]
    metafile: { inputs: Record<string, unknown> }
  }>
}

// The esbuild that wrangler uses.
const require = createRequire(createRequire(import.meta.url).resolve('wrangler/package.json'))
const { build } = require('esbuild') as Esbuild

/** A bundled Worker and its source files. */
export interface Bundle {
  script: string
  files: string[]
}

/**
 * Bundles the Worker of a project as `wrangler deploy` does, without minifying it.
 * @throws Error with the file, line and column of the first error
 */
export async function bundle(root: string): Promise<Bundle> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: ['src/worker.ts'],
    bundle: true,
    format: 'esm',
    target: 'es2024',
    conditions: ['workerd', 'worker', 'browser'],
    loader: { '.lua': 'text' },
    external: ['cloudflare:*', 'node:*'],
    write: false,
    metafile: true,
    logLevel: 'silent',
  }).catch(({ errors, message }: { errors?: Message[]; message: string }) => {
    const [first] = errors ?? []
    if (!first) throw new Error(message)
    const { file, line, column } = first.location ?? { file: 'src/worker.ts', line: 1, column: 0 }
    throw new Error(`${file}:${line}:${column + 1}: ${first.text}`)
  })
  const files = Object.keys(metafile.inputs).map((file) => join(root, file))
  return { script: outputFiles[0]!.text, files }
}

/** The folders of the source files of a bundle, without packages. */
export const foldersOf = (files: string[]): string[] => [
  ...new Set(files.filter((file) => !file.includes('/node_modules/')).map(dirname)),
]
