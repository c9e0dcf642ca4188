/** What isolates with leases hold while others ask: eight of them on one quota, of which 95 % are asked for. */

import { setTimeout as sleep } from 'node:timers/promises'
import { gapMs } from '../../random.ts'
import { startFarRedis } from '../bridge.ts'
import { Connection } from '../load/connection.ts'
import { addressOf } from '../load/order.ts'
import type { Stack } from '../run.ts'
import type { VariantId } from '../variants.ts'

export interface Isolates {
  id: VariantId
  /** Of what was asked for within the quota, how much was admitted; 1 is all. */
  share: number
  /** HTTP requests to Redis for each of these. */
  calls: number
  /** Admitted beyond the quota, when it was asked for more; and short of it. */
  over: number
  under: number
}

const ISOLATES = 8
/** Connections to each. */
const EACH = 4
const LOAD = 0.95
const PER_SECOND = 800
/** Nothing comes back while it lasts. */
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
        const within = await knock(ports, due, PER_SECOND)
        const calls = ((await far.calls()) - before) / due
        const beyond = await knock(ports, 2 * (limit - due) + 1000, Number.POSITIVE_INFINITY)
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

/** So many requests of one client, at random times, the isolates as likely as each other. @returns how many were admitted */
async function knock(ports: number[], requests: number, perSecond: number): Promise<number> {
  let left = requests
  let admitted = 0
  const rate = perSecond / (ports.length * EACH)
  const one = async (port: number) => {
    const connection = new Connection(port)
    let due = performance.now()
    while (left-- > 0) {
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
