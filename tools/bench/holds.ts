/** `npx node tools/bench/holds.ts`: what batching costs and saves, by the rate of an isolate. Writes the table of docs/explanation/cost.md. */
import { writeBetween } from '../markers.ts'
import { openServer } from './server.ts'
import { simulate } from './simulate/run.ts'
import { table } from './stack/report/table.ts'

const PAGE = new URL('../../docs/explanation/cost.md', import.meta.url)
/** Requests a second in each isolate. */
const RATES = [100, 500, 1000, 1500, 5000]
const ISOLATES = 10

const server = await openServer()
try {
  if (!server.owned) throw new Error('This command empties its Redis. Unset REDIS_URL.')
  const lines: (string | number)[][] = []
  for (const rate of RATES) {
    console.error(`${rate} requests a second`)
    const world = { isolates: ISOLATES, colos: ISOLATES, rps: rate * ISOLATES, seconds: 2 }
    const way = (batching: boolean) => ({ name: '', batching, denialCache: true })
    const never = await simulate(world, way(false), server)
    const batched = await simulate(world, way(true), server)
    const saved = 1 - batched.calls / never.calls
    lines.push([
      rate,
      (batched.p50 - never.p50).toFixed(2),
      (batched.p99 - never.p99).toFixed(2),
      `−${Math.round(saved * 100)} %`,
      (2 * batched.billed).toFixed(2),
      (2 * never.billed).toFixed(2),
    ])
  }
  const head = [
    'requests a second',
    'added p50, ms',
    'added p99, ms',
    'HTTP calls',
    '$ per million',
    'without',
  ]
  await writeBetween(PAGE, 'holds', table(head, lines))
} finally {
  await server.stop()
}
