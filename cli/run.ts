import manifest from '../package.json' with { type: 'json' }
import { commands } from './commands.ts'
import { PROCESS, processes } from './dev/children.ts'
import { meantBy, optionsOf, UsageError } from './options.ts'
import { paint } from './paint.ts'

const USAGE = `An edge rate limiter: policies on Cloudflare Workers and other runtimes,
counters in Redis.

  npx sluice <command> [options]

${commands.map(({ name, about }) => `  ${name.padEnd(10)}  ${about}`).join('\n')}

  --version  print the version
  --help     show this text; after a command, show its options

Exits with 0 on success, with 1 after an error or a finding, and with 2 after a
mistake on the command line.`

/**
 * Runs one command of `sluice`.
 * @param file the file of this program, for the processes that it starts
 */
export async function run([name, ...args]: string[], file: string): Promise<void> {
  if (name === PROCESS) return void (await processes[args[0]!]!())
  const isHelp = name === 'help' && args.length === 0
  if (name === undefined || name === '--help' || name === '-h' || isHelp) {
    return console.log(USAGE)
  }
  if (name === '--version' || name === '-v') return console.log(manifest.version)
  const command = commands.find((one) => one.name === name)
  if (!command) {
    const kind = name.startsWith('-') ? 'option' : 'command'
    const meant = meantBy(name, kind === 'option' ? ['--help', '--version'] : names)
    return mistake(
      `Unknown ${kind} ${JSON.stringify(name)}${meant} To list all: npx sluice --help`,
      2,
    )
  }
  const title = `npx sluice ${name}`
  let wrong: string | undefined
  const onUsageError = (message: string) => {
    wrong = message.replace(/\. To specify a positional argument .*/s, '')
  }
  try {
    await command.run(args, { title, file, onUsageError })
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    if (!(error instanceof UsageError)) return mistake(message, 1)
    wrong = message
  }
  if (wrong === undefined) return
  const [, option] = /^Unknown option '(--[^']*)'/.exec(wrong) ?? []
  const meant = option ? meantBy(option, await optionsOf(command)) : '.'
  mistake(`${wrong}${meant} To list all options: ${title} --help`, 2)
}

const names = commands.map((one) => one.name)

function mistake(message: string, code: 1 | 2): void {
  console.error(paint('red', message, process.stderr))
  process.exitCode = code
}
