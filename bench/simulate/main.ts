/** How bill, calls and exactness grow with isolates, data centres and rate: the code that is deployed, in virtual time. */
import { writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { writeBetween } from '../../dev/markers.ts'
import { openServer } from '../server.ts'
import { within } from '../within.ts'
import { picture, text } from './report.ts'
import { type Simulated, simulate } from './run.ts'
import { ways, worldsUpTo } from './worlds.ts'

const USAGE = `npm run simulate -- [options]
  --isolates N  1 to 10000; default 100
  --colos N     data centres, at most as many as isolates; default 20
  --rps N       requests a second over all isolates, 100 to 10000000; default 100000
  --seconds N   of virtual time, 1 to 60; default 3
  --write       writes docs/reference/benchmarks.md and its picture
  --help        this text

Smaller worlds of the same rate for each isolate come first. A million decisions take a minute or two.`

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
    if (!server.owned) throw new Error('this needs a Redis of its own: unset REDIS_URL')
    for (const one of worldsUpTo(world)) {
      for (const way of ways) {
        console.error(`${one.isolates} isolates, ${one.rps} requests a second, ${way.name}`)
        results.push(await simulate(one, way, server))
      }
    }
  } finally {
    await server.stop()
  }
  const told = text(results)
  console.log(told)
  if (!write) return
  await writeBetween(
    new URL('../../docs/reference/benchmarks.md', import.meta.url),
    'simulation',
    told,
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
