/** Runs workloads in rounds. In each round the variants run in turn, so that other load on the machine affects all equally. */
import type { BenchServer } from '../server.ts'
import { startFarRedis } from './bridge.ts'
import { addressOf, type Order } from './load/order.ts'
import type { Load } from './load.ts'
import { measure, type Sample } from './measure.ts'
import { type VariantId, variants } from './variants.ts'
import type { Isolate } from './workerd.ts'
import type { Workers } from './workers.ts'
import type { Workload } from './workloads.ts'

/** The shared parts of a run. */
export interface Stack {
  server: BenchServer
  load: Load
  workers: Workers
  /** True if this run includes the variant. */
  takes(id: VariantId): boolean
}

export interface RunOptions {
  rounds: number
  /** Duration of a turn, in ms. */
  turnMs: number
  log: (line: string) => void
}

/** The samples of each variant, one for each round. */
export type Samples = Partial<Record<VariantId, Sample[]>>

export async function runWorkload(
  workload: Workload,
  { server, load, workers, takes }: Stack,
  { rounds, turnMs, log }: RunOptions,
): Promise<Samples> {
  await server.send('FLUSHALL')
  const far = await startFarRedis(server.url, workload.rtt)
  const isolates: Isolate[] = []
  const bench = { server, far, load }
  // In the order of `variants`, which is the order of the rows.
  const ids = (Object.keys(variants) as VariantId[]).filter(
    (id) => workload.variants.includes(id) && takes(id),
  )
  try {
    for (const id of ids) isolates.push(await workers.start(id, workload.quotas, far))
    const ordered = (index: number, more: Partial<Order>): Order => ({
      ports: [isolates[index]!.port],
      network: index,
      clients: workload.clients,
      ...more,
    })
    for (const [index, id] of ids.entries()) {
      // Sends requests of all clients once, to reach the measured state and warm up the compilers.
      const uses = workload.exhausted ? workload.quotas[0]!.limit + 3 : 1
      const requests = Math.max(workload.clients * uses, 1000)
      await load.run(ordered(index, { connections: 64, requests }))
      await expectAnswer(isolates[index]!.port, id, workload, addressOf(index, 0))
    }
    const samples: Samples = Object.fromEntries(ids.map((id) => [id, []]))
    const { connections, rate } = workload
    // A single connection makes few requests, so it gets more time.
    const ms = connections === 1 || rate ? turnMs * 2 : turnMs
    for (let round = 0; round < rounds; round++) {
      for (let turn = 0; turn < ids.length; turn++) {
        const index = (turn + round) % ids.length
        const order = ordered(index, { ms, ...(rate ? { rate } : { connections: connections! }) })
        samples[ids[index]!]!.push(await measure(bench, [isolates[index]!.pid], order))
      }
      log(`${workload.id}: round ${round + 1} of ${rounds}`)
    }
    return samples
  } finally {
    await Promise.all(isolates.map((isolate) => isolate.stop()))
    await far.stop()
  }
}

/** Checks that a variant admits or refuses as expected, since a broken one would be fast. */
async function expectAnswer(port: number, id: VariantId, workload: Workload, address: string) {
  const headers = { 'cf-connecting-ip': address }
  const { status } = await fetch(`http://127.0.0.1:${port}/`, { headers })
  const refuses = workload.exhausted && variants[id].by !== 'floor'
  if (status !== (refuses ? 429 : 200)) {
    throw new Error(`${workload.title}: ${variants[id].name} responded with ${status}`)
  }
}
