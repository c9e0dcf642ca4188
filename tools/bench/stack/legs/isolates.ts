/** Measures leases with eight isolates on one quota: how many units isolates hold while others need them. The load is 95 % of the quota. */

import { setTimeout as sleep } from 'node:timers/promises'
import { gapMs } from '../../random.ts'
import { startFarRedis } from '../bridge.ts'
import { Connection } from '../load/connection.ts'
import { addressOf } from '../load/order.ts'
import type { Stack } from '../run.ts'
import type { VariantId } from '../variants.ts'

export interface Isolates {
  id: VariantId
  /** Admitted share of the requests within the quota. 1 is all. */
  share: number
  /** HTTP requests to Redis per request. */
  calls: number
  /** Requests admitted beyond the quota, and units missing to the quota, after more requests than the quota admits. */
  over: number
  under: number
}

const ISOLATES = 8
/** Connections to each isolate. */
const EACH = 4
const LOAD = 0.95
const PER_SECOND = 800
/** Long enough that nothing is refilled during the run. */
const WINDOW_MS = 86_400_000

const contenders: VariantId[] = ['ours-fixed', 'ours-lease-10', 'ours-lease-50']

export async function measureIsolates(
  { server, workers, takes }: Stack,
  seconds: number,
): Promise<Isolates[]> {
  const results: Isolates[] = []
  const far = await startFarRedis(server.url, 10)
  const due = PER_SECOND * seconds
  const limit = Math.round(due / LOAD)
  try {
    for (const id of contenders.filter(takes)) {
      await server.send('FLUSHALL')
      const quotas = [{ limit, windowMs: WINDOW_MS }]
      const isolates = await Promise.all(
        Array.from({ length: ISOLATES }, () => workers.start(id, quotas, far)),
      )
      const ports = isolates.map(({ port }) => port)
      try {
        const before = await far.calls()
        const within = await sendRequests(ports, due, PER_SECOND)
        const calls = ((await far.calls()) - before) / due
        const beyond = await sendRequests(ports, 2 * (limit - due) + 1000, Number.POSITIVE_INFINITY)
        const total = within + beyond
        const over = Math.max(0, total - limit)
        results.push({ id, share: within / due, calls, over, under: Math.max(0, limit - total) })
      } finally {
        await Promise.all(isolates.map((isolate) => isolate.stop()))
      }
    }
  } finally {
    await far.stop()
  }
  return results
}

/** Sends requests of one client at random times to all isolates. @returns the number of admitted requests */
async function sendRequests(ports: number[], requests: number, perSecond: number): Promise<number> {
  let remaining = requests
  let admitted = 0
  const rate = perSecond / (ports.length * EACH)
  const one = async (port: number) => {
    const connection = new Connection(port)
    let due = performance.now()
    while (remaining-- > 0) {
      due += gapMs(rate, Math.random)
      if (due > performance.now()) await sleep(due - performance.now())
      const status = await new Promise((resolve) => connection.ask(addressOf(0, 0), resolve))
      if (status === 200) admitted++
    }
    connection.hangUp()
  }
  await Promise.all(ports.flatMap((port) => Array.from({ length: EACH }, () => one(port))))
  return admitted
}
