/** Reads a configuration for `sluice dev`, in a separate process: a process loads a module only once, and a module may do anything. */
import { join, relative } from 'node:path'
import { ConfigError } from '../../src/core/base/errors.ts'
import type { ConfigOptions } from '../../src/core/config/options.ts'
import { lintLimits, problemsOf } from '../../src/lint/lint.ts'
import { writeBuilt } from '../build.ts'
import { objectProblems } from '../check/objects.ts'
import { hostOf } from '../project/hosts.ts'
import { CONFIG_FILE, isPlaced } from '../project/load-config.ts'
import { placeOf } from '../project/place.ts'
import { wranglerFile } from '../project/wrangler-config.ts'
import { type Description, describe, describeLimits } from './describe.ts'

export type FromReader = { description: Description } | { problem: string }

/**
 * Sends the description of a configuration to the parent process.
 * @param args the configuration, the folder of the project, the command that lists all problems, the module of objects if `sluice dev`
 * adds them, and `build` to write the module of `sluice build`
 */
export async function runReader([file, project, check, objects, build]: string[]): Promise<void> {
  // The stack of an error then names the lines of the source.
  process.setSourceMapsEnabled(true)
  const answer = await read(file!, objects ? undefined : project, Boolean(build)).catch(
    (error) => ({
      problem: problemOf(error, project!, check!),
    }),
  )
  process.send!(answer satisfies FromReader, () => process.exit())
}

/** @param project the folder whose bindings must fit the store; `undefined` without a check of them */
async function read(
  file: string,
  project: string | undefined,
  writes: boolean,
): Promise<FromReader> {
  const host = await hostOf(file)
  const options = (await host.load()) as ConfigOptions
  // The Worker would not start either, with a longer message.
  const config = host.parse(options)
  if (writes) await writeBuilt(file, host)
  const description = host.hasRequests
    ? describe(options, host.sentence)
    : describeLimits(config, host.sentence, lintLimits(options, host.parse))
  const problems = project ? await objectProblems(config, wranglerFile(project)) : []
  return problems.length > 0 ? { problem: problems.join('\n').trim() } : { description }
}

/** Describes an error in one line. */
function problemOf(error: Error, project: string, check: string): string {
  if (!(error instanceof ConfigError)) {
    const [line] = error.message.split('\n')
    return isPlaced(line!) ? line! : `${thrownAt(error, project)}${line}`
  }
  const [{ path, message, hint }, ...more] = problemsOf(error) as [ReturnType<typeof problemsOf>[0]]
  const others = more.length > 0 ? ` (and ${more.length} more; ${check} lists all)` : ''
  return `${placeOf(join(project, CONFIG_FILE), path).slice(project.length + 1)}: ${path}: ${message}${hint && `. ${hint}`}${others}`
}

/** The first line of the project's code in the stack of an error. */
function thrownAt({ stack = '' }: Error, project: string): string {
  for (const [, path, line, column] of stack.matchAll(/(?:file:\/\/)?(\/[^\s():]+):(\d+):(\d+)/g)) {
    const name = relative(project, path!)
    if (!name.startsWith('..') && !name.includes('node_modules')) {
      return `${name}:${line}:${column}: `
    }
  }
  return 'sluice.config.ts: '
}
