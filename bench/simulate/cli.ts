/** Runs the deployed code in virtual time, to measure billed commands, calls and exactness with many isolates. */
import { parseArgs } from 'node:util'
import { openServer } from '../server.ts'
import { within } from '../within.ts'
import { LEGEND, MASTERS_LEGEND, mastersText, text } from './report.ts'
import { type Simulated, simulate } from './run.ts'
import { ways, worldsUpTo } from './worlds.ts'

const WRITE = `
  --write       write the table and the picture to docs/reference/benchmarks.md`

const usage = ({
  command,
  write,
}: Caller) => `Simulates many isolates and one database in virtual time, with the deployed code and a real Redis.
Prints billed commands, HTTP calls, exactness and latency.

  ${command} [options]

  --isolates N  number of isolates, 1 to 10000 (default 100)
  --colos N     number of data centres, at most the number of isolates (default 20)
  --rps N       requests per second over all isolates, 100 to 10000000 (default 100000)
  --seconds N   seconds of virtual time, 1 to 60 (default 3)
  --masters N   a Redis Cluster of 1 to 1000 masters instead of one database: shows the load of each
                master, for this world only${write ? WRITE : ''}
  --help        show this text

Simulates smaller worlds with the same rate per isolate first. A million decisions take one to two minutes.`

/** An invalid command line. */
class UsageError extends Error {}

/** The command that runs the simulation. */
export interface Caller {
  /** How the user calls this program, for the usage. */
  command: string
  /** Writes the results for the option `--write`. Without it there is no such option. */
  write?(results: Simulated[]): Promise<void>
  /** Prints a mistake on the command line. Defaults to the message and the usage. */
  onUsageError?(message: string): void
}

function read(args: string[], { write }: Caller) {
  try {
    const { values } = parseArgs({
      args,
      options: {
        isolates: { type: 'string', default: '100' },
        colos: { type: 'string', default: '20' },
        rps: { type: 'string', default: '100000' },
        seconds: { type: 'string', default: '3' },
        masters: { type: 'string' },
        ...(write && { write: { type: 'boolean' } }),
        help: { type: 'boolean', short: 'h' },
      },
    })
    const isolates = within('--isolates', values.isolates, 1, 10_000)
    return {
      ...values,
      world: {
        isolates,
        colos: within('--colos', values.colos, 1, isolates),
        rps: within('--rps', values.rps, 100, 10_000_000),
        seconds: within('--seconds', values.seconds, 1, 60),
        ...(values.masters && { masters: within('--masters', values.masters, 1, 1000) }),
      },
    }
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

async function simulateWorlds(args: string[], caller: Caller) {
  const { world, write, help } = read(args, caller)
  if (help) return console.log(usage(caller))
  const server = await openServer()
  const results: Simulated[] = []
  try {
    if (!server.owned) throw new Error('This command empties its Redis. Unset REDIS_URL.')
    for (const one of world.masters ? [world] : worldsUpTo(world)) {
      for (const way of ways) {
        console.error(`${one.isolates} isolates, ${one.rps} requests per second, ${way.name}`)
        results.push(await simulate(one, way, server))
      }
    }
  } finally {
    await server.stop()
  }
  console.log(`${text(results)}\n\n${LEGEND}`)
  if (world.masters) console.log(`\n${mastersText(results)}\n\n${MASTERS_LEGEND}`)
  if (write) await caller.write!(results)
}

/** Prints the results. Sets the exit code 1 after an error. */
export async function main(args: string[], caller: Caller): Promise<void> {
  try {
    await simulateWorlds(args, caller)
  } catch (error) {
    const { message } = error as Error
    if (error instanceof UsageError && caller.onUsageError) caller.onUsageError(message)
    else console.error(message)
    if (error instanceof UsageError && !caller.onUsageError) console.error(`\n${usage(caller)}`)
    process.exitCode = 1
  }
}
