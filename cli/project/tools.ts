/** The tools of a project: wrangler, and the esbuild and Miniflare that come with it. Sluice does not install them. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import manifest from '../../package.json' with { type: 'json' }
import { packageManagerOf } from './package-manager.ts'

/** The version of wrangler that Sluice is tested with. */
export const WRANGLER_VERSION = manifest.devDependencies.wrangler

interface Message {
  text: string
  location: { file: string; line: number; column: number } | null
}

/** The part of esbuild that Sluice uses. */
interface Esbuild {
  build(options: object): Promise<{
    outputFiles: { text: string }[]
    metafile: {
      inputs: Record<string, unknown>
      outputs: Record<string, { exports: string[] }>
    }
  }>
}

export type Miniflare = typeof import('miniflare')
export type Wrangler = typeof import('wrangler')

/** The command that installs the wrangler that Sluice is tested with. */
export const installWrangler = (project: string) =>
  `${packageManagerOf(project).add} wrangler@${WRANGLER_VERSION}`

export const missingWrangler = (project: string) =>
  new Error(`wrangler is not installed in this project: ${installWrangler(project)}`)

/** Resolves packages as a file in this folder would; `undefined` if there is no such package. */
function resolveFrom(folder: string, name: string): string | undefined {
  try {
    return createRequire(join(folder, 'package.json')).resolve(name)
  } catch {
    return undefined
  }
}

/** The package.json of the project's wrangler. The project may be a folder with a configuration only: then the one of the current folder. */
export const wranglerIn = (project: string): string | undefined =>
  resolveFrom(project, 'wrangler/package.json') ??
  resolveFrom(process.cwd(), 'wrangler/package.json')

/** True if the project's wrangler knows the field `exports` for Durable Objects: since 4.107. A project without one gets a newer one. */
export function knowsExports(project: string): boolean {
  const file = wranglerIn(project)
  const [major, minor] = (file ? versionOf(file) : WRANGLER_VERSION).split('.').map(Number)
  return major! > 4 || (major === 4 && minor! >= 107)
}

/** The esbuild of the project's wrangler, or the project's own; `undefined` if it has neither. */
export function esbuildOf(project: string): Esbuild | undefined {
  const wrangler = wranglerIn(project)
  const file =
    (wrangler && resolveFrom(dirname(wrangler), 'esbuild')) ?? resolveFrom(project, 'esbuild')
  return file === undefined ? undefined : (createRequire(file)(file) as Esbuild)
}

/** @throws Error if the project has no wrangler */
export async function wranglerOf(project: string): Promise<Wrangler> {
  const manifest = wranglerIn(project)
  const file = manifest && resolveFrom(dirname(manifest), 'wrangler')
  if (!file) throw missingWrangler(project)
  return imported(file)
}

/**
 * The Miniflare of the project's wrangler.
 * @throws Error if the project has no wrangler, or one whose Miniflare has another interface
 */
export async function miniflareOf(project: string): Promise<Miniflare> {
  const wrangler = wranglerIn(project)
  const file = wrangler && resolveFrom(dirname(wrangler), 'miniflare')
  if (!wrangler || !file) throw missingWrangler(project)
  const expected = majorOf(manifest.devDependencies.miniflare)
  const found = majorOf(versionOf(resolveFrom(dirname(wrangler), 'miniflare/package.json')!))
  if (found !== expected) {
    throw new Error(
      `Sluice runs Workers with Miniflare ${expected}, and wrangler ${versionOf(wrangler)} has Miniflare ${found}: ${installWrangler(project)}`,
    )
  }
  return imported(file)
}

async function imported<T>(file: string): Promise<T> {
  const module = await import(pathToFileURL(file).href)
  return module.default ?? module
}

const versionOf = (file: string) => JSON.parse(readFileSync(file, 'utf8')).version as string
const majorOf = (version: string) => version.split('.')[0]!

/**
 * Runs esbuild.
 * @param entry named for an error without a position
 * @throws Error with the file, line and column of the first error
 */
export const runEsbuild = (esbuild: Esbuild, entry: string, options: object) =>
  esbuild
    .build({ entryPoints: [entry], bundle: true, format: 'esm', ...options, ...QUIET })
    .catch(({ errors, message }: { errors?: Message[]; message: string }) => {
      const [first] = errors ?? []
      if (!first) throw new Error(message)
      const { file, line, column } = first.location ?? { file: entry, line: 1, column: 0 }
      throw new Error(`${file}:${line}:${column + 1}: ${first.text}`)
    })

const QUIET = { write: false, metafile: true, logLevel: 'silent' }
