import manifest from '../package.json' with { type: 'json' }
import { commands } from './commands.ts'
import { PROCESS, processes } from './dev/children.ts'

const USAGE = `An edge rate limiter: policies on Cloudflare Workers and other runtimes, counters in Redis.

  npx sluice <command> [options]

${commands.map(({ name, about }) => `  ${name.padEnd(9)}  ${about}`).join('\n')}

  --version  print the version
  --help     show this text; after a command, show its options

Exits with 0 on success, and with 1 after an error, a finding of check, or a mistake on the command line.`

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
    return mistake(`Unknown ${kind} ${JSON.stringify(name)}. To list all: npx sluice --help`)
  }
  const title = `npx sluice ${name}`
  const onUsageError = (message: string) =>
    mistake(
      `${message.replace(/\. To specify a positional argument .*/s, '')}. To list all options: ${title} --help`,
    )
  try {
    await command.run(args, { title, file, onUsageError })
  } catch (error) {
    mistake(error instanceof Error ? error.message : String(error))
  }
}

function mistake(message: string): void {
  console.error(message)
  process.exitCode = 1
}
