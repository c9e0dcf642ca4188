/** `npm run simulate`: runs the deployed code in virtual time, to measure billed commands, calls and exactness with many isolates. */
import { writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { writeBetween } from '../../markers.ts'
import { openServer } from '../server.ts'
import { within } from '../within.ts'
import { LEGEND, MASTERS_LEGEND, mastersText, picture, text } from './report.ts'
import { type Simulated, simulate } from './run.ts'
import { ways, worldsUpTo } from './worlds.ts'

const docs = new URL('../../../docs/reference/', import.meta.url)

const USAGE = `Simulates many isolates and one database in virtual time, with the deployed code and a real Redis.
Prints billed commands, HTTP calls, exactness and latency.

  npm run simulate -- [options]

  --isolates N  number of isolates, 1 to 10000 (default 100)
  --colos N     number of data centres, at most the number of isolates (default 20)
  --rps N       requests per second over all isolates, 100 to 10000000 (default 100000)
  --seconds N   seconds of virtual time, 1 to 60 (default 3)
  --masters N   a Redis Cluster of 1 to 1000 masters instead of one database: shows the load of each
                master, for this world only
  --write       write the table to tools/bench/RESULTS.md, and the picture of docs/reference/benchmarks.md
  --help        show this text

Simulates smaller worlds with the same rate per isolate first. A million decisions take one to two minutes.`

/** An invalid command line. */
class UsageError extends Error {}

function read() {
  try {
    const { values } = parseArgs({
      options: {
        isolates: { type: 'string', default: '100' },
        colos: { type: 'string', default: '20' },
        rps: { type: 'string', default: '100000' },
        seconds: { type: 'string', default: '3' },
        masters: { type: 'string' },
        write: { type: 'boolean' },
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

async function simulateWorlds() {
  const { world, write, help } = read()
  if (help) return console.log(USAGE)
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
  if (write) await writeResults(results)
}

async function writeResults(results: Simulated[]) {
  const page = new URL('../RESULTS.md', import.meta.url)
  const masters = mastersText(results)
  if (masters) return writeBetween(page, 'masters', masters)
  await writeBetween(page, 'simulation', text(results))
  await writeFile(new URL('simulation.svg', docs), picture(results))
}

try {
  await simulateWorlds()
} catch (error) {
  console.error((error as Error).message)
  if (error instanceof UsageError) console.error(`\n${USAGE}`)
  process.exitCode = 1
}
