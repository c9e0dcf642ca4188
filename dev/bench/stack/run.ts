/** Workloads by rounds: in each round the variants take turns, so that a busy minute slows them alike. */
import { fileURLToPath } from 'node:url'
import { build } from '../../build.ts'
import type { BenchServer } from '../server.ts'
import { startFarRedis } from './bridge.ts'
import { addressOf, type Order } from './load/order.ts'
import type { Load } from './load.ts'
import { measure, type Sample } from './measure.ts'
import { exists, type Quota, type Variant, type VariantId, variants } from './variants.ts'
import { type Isolate, startIsolate } from './workerd.ts'
import type { Workload } from './workloads.ts'

const path = (file: string) => fileURLToPath(new URL(`../../../${file}`, import.meta.url))
export const outdir = ({ worker }: Pick<Variant, 'worker'>) => path(`dist/bench/${worker}`)

export async function buildWorkers(): Promise<void> {
  const files = [...new Set(Object.values(variants).map(({ worker }) => worker))]
  await Promise.all(
    files.map((worker) => build(outdir({ worker }), `dev/bench/stack/workers/${worker}.ts`)),
  )
}

/** An isolate with a variant in it. */
export function isolateOf(
  id: VariantId,
  quotas: Quota[],
  far: { url: string; token: string },
  binary?: string,
): Promise<Isolate> {
  const variant = variants[id]
  const settings = JSON.stringify(variant.settings(quotas))
  return startIsolate(outdir(variant), { url: far.url, token: far.token, settings }, binary)
}

export interface RunOptions {
  rounds: number
  /** Those that take part; by default all. */
  only?: VariantId[] | undefined
  /** How long each turn takes, ms. */
  turnMs: number
  binary?: string | undefined
  log: (line: string) => void
}

/** The samples of each variant, one for each round. */
export type Samples = Partial<Record<VariantId, Sample[]>>

export async function runWorkload(
  workload: Workload,
  server: BenchServer,
  load: Load,
  { rounds, turnMs, only, binary, log }: RunOptions,
): Promise<Samples> {
  await server.send('FLUSHALL')
  const far = await startFarRedis(server.url, workload.rtt)
  const isolates: Isolate[] = []
  const bench = { server, far, load }
  const ids = workload.variants.filter((id) => exists(id) && (only?.includes(id) ?? true))
  try {
    for (const id of ids) isolates.push(await isolateOf(id, workload.quotas, far, binary))
    const ordered = (index: number, more: Partial<Order>): Order => ({
      ports: [isolates[index]!.port],
      network: index,
      clients: workload.clients,
      ...more,
    })
    for (const [index, id] of ids.entries()) {
      // Once around all clients, until each is as it is to be, and the compilers have seen the code.
      const uses = workload.exhausted ? workload.quotas[0]!.limit + 3 : 1
      const requests = Math.max(workload.clients * uses, 1000)
      await load.run(ordered(index, { connections: 64, requests }))
      await expectAnswer(isolates[index]!.port, id, workload, addressOf(index, 0))
    }
    const samples: Samples = Object.fromEntries(ids.map((id) => [id, []]))
    const { connections, rate } = workload
    // Lone requests are few.
    const ms = connections === 1 || rate ? turnMs * 2 : turnMs
    for (let round = 0; round < rounds; round++) {
      for (let turn = 0; turn < ids.length; turn++) {
        const index = (turn + round) % ids.length
        const order = ordered(index, { ms, ...(rate ? { rate } : { connections: connections! }) })
        samples[ids[index]!]!.push(await measure(bench, [isolates[index]!.pid], order))
      }
      log(`${workload.title}: round ${round + 1} of ${rounds}`)
    }
    return samples
  } finally {
    await Promise.all(isolates.map((isolate) => isolate.stop()))
    await far.stop()
  }
}

/** A variant that does not do what is measured would be fast. */
async function expectAnswer(port: number, id: VariantId, workload: Workload, address: string) {
  const headers = { 'cf-connecting-ip': address }
  const { status } = await fetch(`http://127.0.0.1:${port}/`, { headers })
  const refuses = workload.exhausted && variants[id].by !== 'floor'
  if (status !== (refuses ? 429 : 200)) {
    throw new Error(`${workload.title}: ${variants[id].name} answered ${status}`)
  }
}
