/** Measures a shield: the share of a flood that reaches Redis. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { BenchServer } from '../../server.ts'
import { startFarRedis } from '../bridge.ts'
import type { Order } from '../load/order.ts'
import type { Stack } from '../run.ts'

const CLIENTS = 5_000
/** The period of the shield, which begins at the full minute. */
const PERIOD_MS = 60_000
/** Time in ms that a run may need within one period on a slow machine. */
const NEEDED_MS = 20_000

export interface ShieldFlood {
  requests: number
  refused: number
  /** The share that Redis decided; `undefined` if the run did not end within the period. */
  reached: number | undefined
}

export async function measureShield({ server, load, workers }: Stack): Promise<ShieldFlood> {
  await server.send('FLUSHALL')
  const far = await startFarRedis(server.url, 0)
  const quotas = [{ limit: 1, windowMs: 3_600_000 }]
  const nowhere = { origin: 'http://127.0.0.1:9' }
  const each = (port: number): Order => ({
    ports: [port],
    network: 0,
    clients: CLIENTS,
    connections: 64,
    requests: CLIENTS,
  })
  const stops = [far.stop]
  try {
    // Uses up the quotas in Redis first, with a Worker that needs no Miniflare and is faster.
    const isolate = await workers.start('ours-gateway', quotas, far, nowhere)
    stops.unshift(isolate.stop)
    await load.run(each(isolate.port))

    const shielded = await workers.start('ours-shield', quotas, far, nowhere)
    stops.unshift(shielded.stop)
    const all = each(shielded.port)
    const remainingMs = PERIOD_MS - (Date.now() % PERIOD_MS)
    if (remainingMs < NEEDED_MS) await sleep(remainingMs)
    const period = () => Math.floor(Date.now() / PERIOD_MS)
    const begun = period()
    await load.run(all)
    const before = await keysRead(server)
    const { count, statuses } = await load.run(all)
    const read = (await keysRead(server)) - before
    return {
      requests: count,
      refused: statuses[429] ?? 0,
      reached: period() === begun ? read / count : undefined,
    }
  } finally {
    for (const stop of stops) await stop()
  }
}

/** Keys read by Redis: one for each decision, also in a batch. */
async function keysRead(server: BenchServer): Promise<number> {
  const stats = String(await server.send('INFO', 'stats'))
  return [...stats.matchAll(/^keyspace_(?:hits|misses):(\d+)/gm)].reduce(
    (sum, [, count]) => sum + Number(count),
    0,
  )
}
