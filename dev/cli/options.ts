import { type ParseArgsConfig, parseArgs } from 'node:util'
import type { Call } from './call.ts'

/**
 * Parses the options of a command. Returns `undefined` after `--help` and after a mistake, which it prints.
 */
export function readOptions<Options extends NonNullable<ParseArgsConfig['options']>>(
  args: string[],
  options: Options,
  usage: string,
  { onUsageError }: Pick<Call, 'onUsageError'>,
) {
  try {
    const config = { args, options: { ...options, ...HELP } }
    const { values } = parseArgs<typeof config>(config)
    if (!(values as { help?: boolean }).help) return values
    console.log(usage)
  } catch (error) {
    onUsageError((error as Error).message)
  }
  return undefined
}

/** Parses the options of a script of this repository. A mistake is printed with the usage, and sets the exit code. */
export const readScriptOptions = <Options extends NonNullable<ParseArgsConfig['options']>>(
  options: Options,
  usage: string,
) =>
  readOptions(process.argv.slice(2), options, usage, {
    onUsageError(message) {
      console.error(`${message}\n\n${usage}`)
      process.exitCode = 1
    },
  })

const HELP = { help: { type: 'boolean', short: 'h' } } as const
