import { type ParseArgsConfig, parseArgs } from 'node:util'
import { nearest } from '../src/lint/nearest.ts'
import type { Call, Command } from './call.ts'

type Options = NonNullable<ParseArgsConfig['options']>
type Mistakes = Pick<Call, 'onUsageError'>

/** A mistake on the command line, besides those that `readArguments` reports. */
export class UsageError extends Error {}

/**
 * Parses the options and the other arguments of a command. Returns `undefined` after `--help` and after a mistake, which it prints.
 */
export function readArguments<Own extends Options>(
  args: string[],
  options: Own,
  usage: string,
  { onUsageError }: Mistakes,
  allowPositionals = true,
) {
  try {
    const config = { args, options: { ...options, ...HELP }, allowPositionals }
    const { values, positionals } = parseArgs<typeof config>(config)
    if (!(values as { help?: boolean }).help)
      return { values, positionals: positionals as string[] }
    console.log(usage)
  } catch (error) {
    onUsageError((error as Error).message)
  }
  return undefined
}

/** Parses the options of a command that takes no other arguments. */
export const readOptions = <Own extends Options>(
  args: string[],
  options: Own,
  usage: string,
  call: Mistakes,
) => readArguments(args, options, usage, call, false)?.values

/** Parses the options of a script of this repository. A mistake is printed with the usage, and sets the exit code. */
export const readScriptOptions = <Own extends Options>(options: Own, usage: string) =>
  readOptions(process.argv.slice(2), options, usage, {
    onUsageError(message) {
      console.error(`${message}\n\n${usage}`)
      process.exitCode = 1
    },
  })

/** The options that the help of a command lists. */
export async function optionsOf({ name, run }: Command): Promise<string[]> {
  const { log } = console
  let help = ''
  console.log = (text) => {
    help += text
  }
  try {
    await run(['--help'], { title: `npx sluice ${name}`, file: '', onUsageError() {} })
  } finally {
    console.log = log
  }
  return [...help.matchAll(/^ {2}(--[a-z\d-]+)(?: [A-Z]+, (--[a-z\d-]+))?/gm)].flatMap(
    ([, ...options]) => options.filter((option) => option !== undefined),
  )
}

/** The end of a sentence about an unknown name: a name that was probably meant, if there is one. */
export function meantBy(written: string, known: string[]): string {
  const meant = nearest(written, known)
  return meant ? `; did you mean ${meant}?` : '.'
}

const HELP = { help: { type: 'boolean', short: 'h' } } as const
