import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { FaultError, type FaultText, parseFault } from './fault.ts'
import { type Faults, startFaults } from './faults.ts'
import { type Kind, kinds } from './kinds.ts'

const list = Object.entries<Kind>(kinds).map(
  ([name, { does, argument }]) =>
    `  ${(argument ? `${name}=${argument.default.split(' ')[0]}` : name).padEnd(20)} ${does}`,
)

const USAGE = `An HTTP proxy that injects faults between a client and the Upstash REST API.

  npm run faults -- --target URL [options]

  --target URL   the REST URL to forward to, such as http://127.0.0.1:8079 (required)
  --port N       the port to listen on; 0 selects a free port (default 8078)
  --fault FAULT  the fault to start with (default none)
  --share X      the share of requests that the fault applies to, such as 0.25 (default 1)
  --next N       apply the fault to the next N requests only
  --help         show this text

While the proxy runs, type a fault and press Enter to change it. "off" ends the fault.

Faults, with the default argument of those that take one:

${list.join('\n')}`

interface CliOptions {
  target: string
  port: number
  fault: FaultText | null
  aim: { share?: number; next?: number }
}

/** Parses the command line. @throws FaultError */
export function parseCli(args: string[]): CliOptions | 'help' {
  const values = read(args)
  if (values.help) return 'help'
  if (!values.target)
    throw new FaultError('--target: expected a REST URL, such as http://127.0.0.1:8079')
  const port = number('--port', values.port ?? '8078')
  if (!Number.isSafeInteger(port) || port > 65_535) {
    throw new FaultError(`--port: expected a whole number from 0 to 65535, got "${values.port}"`)
  }
  if (values.fault) parseFault(values.fault)
  return {
    target: values.target,
    port,
    fault: (values.fault as FaultText | undefined) ?? null,
    aim: {
      ...(values.share && { share: number('--share', values.share) }),
      ...(values.next && { next: number('--next', values.next) }),
    },
  }
}

function read(args: string[]) {
  const text = { type: 'string' } as const
  const options = { target: text, port: text, fault: text, share: text, next: text }
  try {
    return parseArgs({ args, options: { ...options, help: { type: 'boolean', short: 'h' } } })
      .values
  } catch (error) {
    throw new FaultError(error instanceof Error ? error.message : String(error))
  }
}

function number(flag: string, text: string): number {
  if (/^\d{1,9}(\.\d+)?$/.test(text)) return Number(text)
  throw new FaultError(`${flag}: expected a number, got "${text}"`)
}

/** Runs until Ctrl-C. */
async function main(args: string[]): Promise<void> {
  try {
    const options = parseCli(args)
    if (options === 'help') return console.log(USAGE)
    const faults = await startFaults(options)
    await faults.set(options.fault, options.aim).catch(async (error) => {
      await faults.close()
      throw error
    })
    console.log(`UPSTASH_REDIS_REST_URL=${faults.url}`)
    serve(faults)
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error))
    if (error instanceof FaultError)
      console.error('Run with --help to list all options and faults.')
    process.exitCode = 1
  }
}

function serve(faults: Faults): void {
  const lines = createInterface({ input: process.stdin })
  lines.on('line', async (line) => {
    const text = line.trim()
    if (!text) return
    try {
      await faults.set(text === 'off' ? null : (text as FaultText))
      console.error(text === 'off' ? 'no fault' : `fault: ${text}`)
    } catch (error) {
      console.error((error as Error).message)
    }
  })
  const stop = async () => {
    lines.close()
    process.stdin.destroy()
    await faults.close()
  }
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
}

if (import.meta.main) await main(process.argv.slice(2))
