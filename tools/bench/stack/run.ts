/** Runs workloads in rounds. In each round the variants run in turn, so that other load on the machine affects all equally. */
import type { BenchServer } from '../server.ts'
import { startFarRedis } from './bridge.ts'
import { addressOf, type Order } from './load/order.ts'
import type { Load } from './load.ts'
import { measure, type Sample } from './measure.ts'
import { type VariantId, variants } from './variants.ts'
import type { Isolate } from './workerd.ts'
import type { Workers } from './workers.ts'
import { RTT_MS, type Workload } from './workloads.ts'

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
  /** The requests that a Worker answers before it is measured, so that V8 has compiled its code: 1,000 are too few. */
  warmUp: number
  log: (line: string) => void
}

/** The samples of each variant, one for each round. */
export type Samples = Partial<Record<VariantId, Sample[]>>

/**
 * Runs workloads that have the same quotas, on the same isolates.
 * @returns the samples by the id of the workload
 */
export async function runWorkloads(
  workloads: Workload[],
  { server, load, workers, takes }: Stack,
  { rounds, turnMs, warmUp, log }: RunOptions,
): Promise<Record<string, Samples>> {
  const [{ quotas, exhausted }] = workloads as [Workload]
  const clients = Math.max(...workloads.map((one) => one.clients))
  await server.send('FLUSHALL')
  const far = await startFarRedis(server.url, RTT_MS)
  const isolates = new Map<VariantId, Isolate>()
  // In the order of `variants`, which is the order of the rows.
  const ids = (Object.keys(variants) as VariantId[]).filter(
    (id) => takes(id) && workloads.some((one) => one.variants.includes(id)),
  )
  const ordered = (id: VariantId, more: Partial<Order>): Order => ({
    ports: [isolates.get(id)!.port],
    network: ids.indexOf(id),
    clients,
    ...more,
  })
  async function round(workload: Workload, first: number, samples: Samples) {
    const own = Object.keys(samples) as VariantId[]
    const { connections, rate } = workload
    // A single connection makes few requests, so it gets more time.
    const ms = connections === 1 || rate ? turnMs * 2 : turnMs
    for (let turn = 0; turn < own.length; turn++) {
      const id = own[(turn + first) % own.length]!
      const order = ordered(id, {
        clients: workload.clients,
        ms,
        ...(rate ? { rate } : { connections: connections! }),
      })
      const sample = await measure({ server, far, load }, [isolates.get(id)!.pid], order)
      samples[id]!.push(sample)
    }
  }
  try {
    for (const id of ids) {
      const origin = isolates.get('nothing')?.port
      const more = variants[id].proxies && { origin: `http://127.0.0.1:${origin}` }
      const isolate = await workers.start(id, quotas, far, more)
      isolates.set(id, isolate)
      // Sends requests of all clients, to reach the measured state.
      const uses = exhausted ? quotas[0]!.limit + 3 : 1
      const requests = Math.max(clients * uses, warmUp)
      await load.run(ordered(id, { connections: 64, requests }))
      await expectAnswer(isolate.port, id, exhausted, addressOf(ids.indexOf(id), 0))
    }
    const all: Record<string, Samples> = {}
    for (const workload of workloads) {
      const own = ids.filter((id) => workload.variants.includes(id))
      const samples: Samples = Object.fromEntries(own.map((id) => [id, []]))
      for (let n = 0; n < rounds; n++) await round(workload, n, samples)
      log(workload.id)
      all[workload.id] = samples
    }
    return all
  } finally {
    await Promise.all([...isolates.values()].map((isolate) => isolate.stop()))
    await far.stop()
  }
}

/** Checks that a variant admits or refuses as expected, since a broken one would be fast. */
async function expectAnswer(
  port: number,
  id: VariantId,
  exhausted: boolean | undefined,
  address: string,
) {
  const headers = { 'cf-connecting-ip': address }
  const { status } = await fetch(`http://127.0.0.1:${port}/`, { headers })
  const admitsAll = id === 'nothing' || id === 'bare'
  if (status !== (exhausted && !admitsAll ? 429 : 200)) {
    throw new Error(`${variants[id].name} responded with ${status}`)
  }
}
