/** Measures the latency of an origin behind the limiter, with `check: 'before'` and `check: 'parallel'`. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { startFarRedis } from '../bridge.ts'
import type { Order } from '../load/order.ts'
import { measure } from '../measure.ts'
import type { RunOptions, Samples, Stack } from '../run.ts'
import type { VariantId } from '../variants.ts'
import type { Isolate } from '../workerd.ts'

/** Response time of the origin, and round trip to Redis, in ms. */
export const ORIGIN_MS = 20
export const REDIS_MS = 10

const contenders: VariantId[] = ['ours-origin', 'ours-before', 'ours-parallel']

export async function measureParallel(
  { server, load, workers }: Stack,
  { rounds, turnMs, log }: RunOptions,
): Promise<Samples> {
  await server.send('FLUSHALL')
  const far = await startFarRedis(server.url, REDIS_MS)
  const origin = await startSlowOrigin()
  const isolates: Isolate[] = []
  const samples: Samples = Object.fromEntries(contenders.map((id) => [id, []]))
  try {
    const quotas = [{ limit: 1_000_000, windowMs: 3_600_000 }]
    for (const id of contenders)
      isolates.push(await workers.start(id, quotas, far, { origin: origin.url }))
    const ordered = (index: number, more: Partial<Order>): Order => ({
      ports: [isolates[index]!.port],
      network: index,
      clients: 100,
      ...more,
    })
    for (const index of contenders.keys()) {
      await load.run(ordered(index, { connections: 16, requests: 500 }))
    }
    for (let round = 0; round < rounds; round++) {
      for (let turn = 0; turn < contenders.length; turn++) {
        const index = (turn + round) % contenders.length
        const order = ordered(index, { ms: turnMs * 2, connections: 1 })
        const one = await measure({ server, far, load }, [isolates[index]!.pid], order)
        if (one.statuses[200] !== one.count) throw new Error('A request was not admitted.')
        samples[contenders[index]!]!.push(one)
      }
      log(`parallel: round ${round + 1} of ${rounds}`)
    }
    return samples
  } finally {
    await Promise.all(isolates.map((isolate) => isolate.stop()))
    origin.close()
    await far.stop()
  }
}

/** Runs in this process, which is idle during the load. */
async function startSlowOrigin() {
  const server = createServer((_, response) => {
    setTimeout(() => response.end('ok'), ORIGIN_MS)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}
