/** `npm run chaos`: injects faults into Redis under load, and measures the responses of the Worker. */
import { parseArgs } from 'node:util'
import { buildStack } from '../../stack.ts'
import { within } from '../within.ts'
import { misses, table } from './report.ts'
import { type ChaosStore, runChaos, STORES } from './run.ts'

const USAGE = `Runs the Worker, or a Node server with store: redis(client), under load while Redis crashes, hangs,
slows down, loses its scripts and returns garbage, or the Worker while Durable Objects lose their
memory, hang and cannot write, and measures the responses. Exits with 1 if a result misses its
target.

  npm run chaos -- [options]

  --store S    redis (default), client (of the Node server) or durable-objects
  --seconds N  duration in seconds, 20 to 3600 (default 180)
  --rate N     requests per second, 200 to 2000 (default 250)
  --help       show this text`

async function main(): Promise<void> {
  const options = read()
  if (!options) return
  const ending = new AbortController()
  process.once('SIGINT', () => ending.abort())
  process.once('SIGTERM', () => ending.abort())
  if (options.store === 'redis') await buildStack()
  const report = await runChaos({ ...options, log: console.error, signal: ending.signal })
  console.log(`\n${table(report)}`)
  const missed = misses(report)
  for (const line of missed) console.error(`TARGET MISSED: ${line}`)
  if (missed.length > 0) process.exitCode = 1
}

function read() {
  try {
    const { values } = parseArgs({
      options: {
        store: { type: 'string', default: 'redis' },
        seconds: { type: 'string', default: '180' },
        rate: { type: 'string', default: '250' },
        help: { type: 'boolean', short: 'h' },
      },
    })
    if (!values.help) {
      return {
        store: storeOf(values.store),
        seconds: within('--seconds', values.seconds, 20, 3600),
        rate: within('--rate', values.rate, 200, 2000),
      }
    }
    console.log(USAGE)
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`)
    process.exitCode = 1
  }
  return undefined
}

function storeOf(text: string): ChaosStore {
  const store = STORES.find((one) => one === text)
  if (store) return store
  throw new Error(`--store: expected ${STORES.join(', ')}, got ${JSON.stringify(text)}`)
}

await main().catch((error) => {
  console.error(error.name === 'AbortError' ? 'stopped' : error)
  process.exit(1) // a failed start may leave handles open; the watchdogs end its child processes
})
