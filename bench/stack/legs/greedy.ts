/** Measures how much of its limit a client gets that never waits. Too little is as wrong as too much. */
import { setTimeout as sleep } from 'node:timers/promises'
import { startFarRedis } from '../bridge.ts'
import { Connection } from '../load/connection.ts'
import { addressOf } from '../load/order.ts'
import type { Stack } from '../run.ts'
import type { VariantId } from '../variants.ts'

export interface Greedy {
  id: VariantId
  /** Admitted share of the limit in each window. 1 is exact. */
  share: number
}

const LIMIT = 10
const WINDOW_MS = 1000
const CLIENTS = 4
/** Pause between two requests of a client, in ms. */
const PACE_MS = 10

const contenders: VariantId[] = [
  'ours',
  'ours-uncached',
  'ours-fixed',
  'ours-log',
  'ours-bucket',
  'ours-gcra',
  'upstash-fixed',
  'upstash-fixed-cache',
  'upstash-sliding',
  'upstash-sliding-cache',
  'upstash-bucket',
  'upstash-bucket-cache',
  'hono',
]

export async function measureGreedy(
  { server, workers, takes }: Stack,
  windows: number,
): Promise<Greedy[]> {
  await server.send('FLUSHALL')
  const far = await startFarRedis(server.url, 10)
  try {
    return await Promise.all(
      contenders.filter(takes).map(async (id, network) => {
        const isolate = await workers.start(id, [{ limit: LIMIT, windowMs: WINDOW_MS }], far)
        try {
          const clients = Array.from({ length: CLIENTS }, (_, n) => addressOf(network, n))
          const admitted = await Promise.all(
            clients.map((address) => sendRequests(isolate.port, address, windows)),
          )
          const total = admitted.reduce((sum, one) => sum + one, 0)
          return { id, share: total / (CLIENTS * windows * LIMIT) }
        } finally {
          await isolate.stop()
        }
      }),
    )
  } finally {
    await far.stop()
  }
}

/** @returns the admitted requests after the first two windows, which may contain a burst */
async function sendRequests(port: number, address: string, windows: number): Promise<number> {
  const connection = new Connection(port)
  const ask = () =>
    new Promise<number>((resolve) => connection.ask(address, (status) => resolve(status)))
  const measureFrom = performance.now() + 2 * WINDOW_MS
  const end = measureFrom + windows * WINDOW_MS
  let admitted = 0
  while (performance.now() < end) {
    const at = performance.now()
    if ((await ask()) === 200 && at >= measureFrom) admitted++
    await sleep(PACE_MS)
  }
  connection.hangUp()
  return admitted
}
