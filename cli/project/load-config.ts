import { existsSync, rmSync } from 'node:fs'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ConfigError, type ConfigProblem, messageOf } from '../../src/core/base/errors.ts'
import { placeOf } from './place.ts'
import { esbuildOf, installWrangler, runEsbuild } from './tools.ts'

export const CONFIG_FILE = 'sluice.config.ts'

/** True if a message begins with its place, as those of esbuild do. */
export const isPlaced = (message: string) => /^\S.*:\d+:\d+: /.test(message)

/** The message of an error of a configuration, with its places in the file as far as they are known. */
export function placed(file: string, error: Error): string {
  if (!(error instanceof ConfigError))
    return isPlaced(error.message) ? error.message : `${file}: ${error.message}`
  const lines = error.problems.map(
    (problem) => `${placeOf(file, problem.path)}: ${problem.path}: ${messageOf(problem)}`,
  )
  return lines.length === 1
    ? lines[0]!
    : `${file}: ${lines.length} problems\n  ${lines.join('\n  ')}`
}

/**
 * Loads the default export of a configuration file, with its functions. The file runs in this process, with its environment.
 * @throws {ConfigError} when the file passes invalid options to a feature
 */
export async function loadConfig(file: string): Promise<unknown> {
  const path = resolve(file)
  if (!existsSync(path)) {
    const remedy =
      file === CONFIG_FILE
        ? '. To write one: npx sluice init. If your code has the policies, move them there'
        : ''
    throw new Error(`the file does not exist${remedy}`)
  }
  const { default: config } = await load(path).catch((error) => {
    throw isConfigError(error) ? new ConfigError(error.problems) : error
  })
  if (config === undefined) throw new Error('expected the configuration as the default export')
  return config
}

/** True for the `ConfigError` of any copy of Sluice: the file imports its own. */
const isConfigError = (error: unknown): error is { problems: ConfigProblem[] } => {
  const { name, problems } = Object(error)
  return name === 'ConfigError' && Array.isArray(problems)
}

/** Imports a module as wrangler's bundler understands it: TypeScript on each version of Node, imports without extension. */
async function load(path: string): Promise<{ default?: unknown }> {
  const esbuild = esbuildOf(dirname(path))
  if (!esbuild) return importPlain(path)
  const folder = await mkdtemp(join(tmpdir(), 'sluice-config-'))
  const remove = () => rmSync(folder, { recursive: true })
  const ended = () => {
    remove()
    console.error(`${basename(path)}: the file ends the process`)
    process.exitCode = 1
  }
  process.once('exit', ended)
  try {
    const outfile = join(folder, 'config.mjs')
    const { outputFiles } = await runEsbuild(esbuild, basename(path), {
      absWorkingDir: dirname(path),
      outfile,
      platform: 'node',
      target: 'es2022',
      sourcemap: 'inline',
      external: ['cloudflare:*'],
      define: {
        'import.meta.url': JSON.stringify(pathToFileURL(path).href),
        'import.meta.filename': JSON.stringify(path),
        'import.meta.dirname': JSON.stringify(dirname(path)),
      },
      // For packages in CommonJS.
      banner: {
        js: `import { createRequire as sluiceRequire } from 'node:module'; const require = sluiceRequire(${JSON.stringify(path)});`,
      },
    })
    await writeFile(outfile, outputFiles[0]!.text)
    return await import(pathToFileURL(outfile).href)
  } finally {
    process.off('exit', ended)
    remove()
  }
}

/** Without esbuild Node itself has to understand the file. */
const importPlain = (path: string): Promise<{ default?: unknown }> =>
  import(pathToFileURL(path).href).catch((error) => {
    if (error.code === 'ERR_UNKNOWN_FILE_EXTENSION') {
      throw new Error(
        `Node ${process.versions.node} cannot load TypeScript. Use Node 22.18 or newer, or: ${installWrangler(dirname(path))}`,
      )
    }
    if (error instanceof SyntaxError && /import statement|'export'/.test(error.message)) {
      throw new Error(
        `Node loads this file as CommonJS. Write "type": "module" into package.json, or: ${installWrangler(dirname(path))}`,
      )
    }
    throw error
  })
