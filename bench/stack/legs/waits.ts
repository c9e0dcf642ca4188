/** Tests that a refused client is admitted after exactly the reported wait, while other clients flood the limiter. */
import { setTimeout as sleep } from 'node:timers/promises'
import { startFarRedis } from '../bridge.ts'
import { Connection } from '../load/connection.ts'
import { addressOf } from '../load/order.ts'
import type { Stack } from '../run.ts'
import type { VariantId } from '../variants.ts'

export interface Waits {
  id: VariantId
  /** Clients that waited exactly as long as the response says. */
  waited: number
  /** Clients that were refused after the wait. */
  falsely: number
}

const CLIENTS = 50
const LIMIT = 5
const WINDOW_MS = 2000
/** Requests of a client before it waits, relative to the limit. */
const FLOOD = 4

const contenders: VariantId[] = [
  'ours',
  'ours-edge',
  'ours-fixed',
  'ours-log',
  'ours-bucket',
  'ours-gcra',
  'upstash-fixed-cache',
  'upstash-sliding-cache',
  'upstash-bucket-cache',
  'hono',
]

export async function measureWaits({ server, workers, takes }: Stack): Promise<Waits[]> {
  const far = await startFarRedis(server.url, 10)
  const one = async (id: VariantId, network: number): Promise<Waits> => {
    const isolate = await workers.start(id, [{ limit: LIMIT, windowMs: WINDOW_MS }], far)
    try {
      const clients = Array.from({ length: CLIENTS }, (_, n) => n)
      const admitted = await Promise.all(
        clients.map((n) => floodThenWait(isolate.port, addressOf(network, n))),
      )
      return { id, waited: CLIENTS, falsely: admitted.filter((is) => !is).length }
    } finally {
      await isolate.stop()
    }
  }
  try {
    await server.send('FLUSHALL')
    return await Promise.all(contenders.filter(takes).map(one))
  } finally {
    await far.stop()
  }
}

/** Sends requests until well after the first refusal, then waits as long as the last one says. @returns true if admitted */
async function floodThenWait(port: number, address: string): Promise<boolean> {
  const connection = new Connection(port)
  const ask = () =>
    new Promise<[status: number, text: string]>((resolve) =>
      connection.ask(address, (status, text) => resolve([status, text])),
    )
  let retryAfterMs: number | undefined
  for (let n = 0; n < LIMIT * FLOOD || retryAfterMs === undefined; n++) {
    if (n > 5000) throw new Error('The limiter admitted more than 5000 requests of one client.')
    const [status, text] = await ask()
    retryAfterMs = status === 429 ? waitOf(text) : undefined
  }
  // Timers may fire early by less than a millisecond, so wait for the exact time.
  const until = performance.now() + retryAfterMs
  await sleep(retryAfterMs)
  while (performance.now() < until) await sleep(1)
  const [status] = await ask()
  connection.hangUp()
  return status === 200
}

/** The wait of a refusal in ms: `retryAfterMs` of the body, or Retry-After. */
function waitOf(text: string): number {
  const exact = /"retryAfterMs":(\d+)/.exec(text)?.[1]
  if (exact) return Number(exact)
  const seconds = /\r\nretry-after: *(\d+)/i.exec(text)?.[1]
  if (!seconds) throw new Error('A refusal has neither retryAfterMs nor Retry-After.')
  return Number(seconds) * 1000
}
