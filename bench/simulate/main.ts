/** `npm run simulate`: runs the deployed code in virtual time, to measure billed commands, calls and exactness with many isolates. */
import { writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { writeBetween } from '../../dev/markers.ts'
import { openServer } from '../server.ts'
import { within } from '../within.ts'
import { LEGEND, picture, text } from './report.ts'
import { type Simulated, simulate } from './run.ts'
import { ways, worldsUpTo } from './worlds.ts'

const USAGE = `Simulates many isolates and one database in virtual time, with the deployed code and a real Redis.
Prints billed commands, HTTP calls, exactness and latency.

  npm run simulate -- [options]

  --isolates N  number of isolates, 1 to 10000 (default 100)
  --colos N     number of data centres, at most the number of isolates (default 20)
  --rps N       requests per second over all isolates, 100 to 10000000 (default 100000)
  --seconds N   seconds of virtual time, 1 to 60 (default 3)
  --write       write the table and the picture to docs/reference/benchmarks.md
  --help        show this text

Simulates smaller worlds with the same rate per isolate first. A million decisions take one to two minutes.`

class UsageError extends Error {}

function read() {
  try {
    const { values } = parseArgs({
      options: {
        isolates: { type: 'string', default: '100' },
        colos: { type: 'string', default: '20' },
        rps: { type: 'string', default: '100000' },
        seconds: { type: 'string', default: '3' },
        write: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
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
      },
    }
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

async function main() {
  const { world, write, help } = read()
  if (help) return console.log(USAGE)
  const server = await openServer()
  const results: Simulated[] = []
  try {
    if (!server.owned) throw new Error('This command empties its Redis. Unset REDIS_URL.')
    for (const one of worldsUpTo(world)) {
      for (const way of ways) {
        console.error(`${one.isolates} isolates, ${one.rps} requests per second, ${way.name}`)
        results.push(await simulate(one, way, server))
      }
    }
  } finally {
    await server.stop()
  }
  const report = text(results)
  console.log(`${report}\n\n${LEGEND}`)
  if (!write) return
  await writeBetween(
    new URL('../../docs/reference/benchmarks.md', import.meta.url),
    'simulation',
    report,
  )
  await writeFile(new URL('../../docs/reference/simulation.svg', import.meta.url), picture(results))
}

try {
  await main()
} catch (error) {
  console.error((error as Error).message)
  if (error instanceof UsageError) console.error(`\n${USAGE}`)
  process.exitCode = 1
}
