/**
 * Measures how a limiter treats two kinds of clients. A patient one is refused, waits exactly as long as the response says, and must be
 * admitted then. A greedy one never waits, and must get its whole limit: too little is as wrong as too much.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { startFarRedis } from '../bridge.ts'
import { Connection } from '../load/connection.ts'
import { addressOf } from '../load/order.ts'
import type { Stack } from '../run.ts'
import type { VariantId } from '../variants.ts'

export interface Clients {
  id: VariantId
  /** Patient clients, and those of them that were refused after the wait. */
  waited: number
  falsely: number
  /** Admitted share of the limit of the greedy clients. 1 is exact. */
  share: number
}

const LIMIT = 10
const WINDOW_MS = 2000
const PATIENT = 20
const GREEDY = 4
/** Requests of a patient client before it waits, relative to the limit. */
const FLOOD = 3
/** Windows in which the greedy clients are counted, after two that may contain a burst. */
const WINDOWS = 5
/** Pause between two requests of a greedy client, in ms. */
const PACE_MS = 10
/** Limiters at a time. More would share the machine so that a client cannot exceed its limit. */
const TOGETHER = 5
/** The first refusal must come within this time, in ms. */
const PATIENCE_MS = 30_000

const contenders: VariantId[] = [
  'ours',
  'ours-uncached',
  'ours-edge',
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

export async function measureClients({ server, workers, takes }: Stack): Promise<Clients[]> {
  await server.send('FLUSHALL')
  const far = await startFarRedis(server.url, 10)
  const each = async (id: VariantId, network: number): Promise<Clients> => {
    const { port, stop } = await workers.start(id, [{ limit: LIMIT, windowMs: WINDOW_MS }], far)
    const clients = (count: number, from: number, run: typeof waitOnce | typeof sendOn) =>
      Promise.all(Array.from({ length: count }, (_, n) => run(port, addressOf(network, from + n))))
    try {
      const patient = await clients(PATIENT, 0, waitOnce)
      const greedy = await clients(GREEDY, PATIENT, sendOn)
      return {
        id,
        waited: PATIENT,
        falsely: PATIENT - sum(patient),
        share: sum(greedy) / (GREEDY * WINDOWS * LIMIT),
      }
    } finally {
      await stop()
    }
  }
  try {
    const ids = contenders.filter(takes)
    const results: Clients[] = []
    for (let from = 0; from < ids.length; from += TOGETHER) {
      const together = ids.slice(from, from + TOGETHER)
      results.push(...(await Promise.all(together.map((id, n) => each(id, from + n)))))
    }
    return results
  } finally {
    await far.stop()
  }
}

const sum = (values: number[]) => values.reduce((total, one) => total + one, 0)

const ask = (connection: Connection, address: string) =>
  new Promise<{ status: number; text: string }>((resolve) =>
    connection.ask(address, (status, text) => resolve({ status, text })),
  )

/** Sends requests until well after the first refusal, then waits as long as the last one says. @returns 1 if admitted, otherwise 0 */
async function waitOnce(port: number, address: string): Promise<number> {
  const connection = new Connection(port)
  const refusedBy = performance.now() + PATIENCE_MS
  let retryAfterMs: number | undefined
  for (let n = 0; n < LIMIT * FLOOD || retryAfterMs === undefined; n++) {
    if (performance.now() > refusedBy)
      throw new Error('The limiter refused no request of a client.')
    const { status, text } = await ask(connection, address)
    retryAfterMs = status === 429 ? waitOf(text) : undefined
  }
  // Timers may fire early by less than a millisecond, so wait for the exact time.
  const until = performance.now() + retryAfterMs
  await sleep(retryAfterMs)
  while (performance.now() < until) await sleep(1)
  const { status } = await ask(connection, address)
  connection.hangUp()
  return status === 200 ? 1 : 0
}

/** The wait of a refusal in ms: `retryAfterMs` of the body, or Retry-After. */
function waitOf(text: string): number {
  const exact = /"retryAfterMs":(\d+)/.exec(text)?.[1]
  if (exact) return Number(exact)
  const seconds = /\r\nretry-after: *(\d+)/i.exec(text)?.[1]
  if (!seconds) throw new Error('A refusal has neither retryAfterMs nor Retry-After.')
  return Number(seconds) * 1000
}

/** Sends requests without waiting. @returns the number of admitted requests */
async function sendOn(port: number, address: string): Promise<number> {
  const connection = new Connection(port)
  const measureFrom = performance.now() + 2 * WINDOW_MS
  const end = measureFrom + WINDOWS * WINDOW_MS
  let admitted = 0
  while (performance.now() < end) {
    const at = performance.now()
    const { status } = await ask(connection, address)
    if (status === 200 && at >= measureFrom) admitted++
    await sleep(PACE_MS)
  }
  connection.hangUp()
  return admitted
}
