/** Reads a configuration for `npm start`, in a separate process: a process loads a module only once, and a module may do anything. */
import { fileURLToPath } from 'node:url'
import { ConfigError } from '../../src/base/errors.ts'
import type { ConfigOptions } from '../../src/config/options.ts'
import { problemsOf } from '../../src/lint/lint.ts'
import { loadConfig } from '../load-config.ts'
import { type Description, describe } from './describe.ts'

export type FromReader = { description: Description } | { problem: string }

const [file, root] = process.argv.slice(2) as [string, string]

async function read(): Promise<FromReader> {
  try {
    return { description: describe((await loadConfig(file)) as ConfigOptions) }
  } catch (error) {
    return { problem: problemOf(error as Error) }
  }
}

/** Describes an error in one line. */
function problemOf(error: Error): string {
  if (!(error instanceof ConfigError)) return `${placeOf(error)}${error.message.split('\n')[0]}`
  const [{ path, message, hint }, ...more] = problemsOf(error) as [ReturnType<typeof problemsOf>[0]]
  const others = more.length > 0 ? ` (and ${more.length} more; npm run check lists all)` : ''
  return `sluice.config.ts: ${path}: ${message}${hint && `. ${hint}`}${others}`
}

/** The first line of the project's code in the stack of an error. */
function placeOf({ stack = '' }: Error): string {
  for (const [, url, line, column] of stack.matchAll(/(file:\/\/\S+?):(\d+):(\d+)/g)) {
    const path = fileURLToPath(url!)
    if (path.startsWith(root) && !path.includes('node_modules')) {
      return `${path.slice(root.length)}:${line}:${column}: `
    }
  }
  return 'sluice.config.ts: '
}

process.send!(await read(), () => process.exit())
