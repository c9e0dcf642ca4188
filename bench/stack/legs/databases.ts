/** Measures shards: decisions per second if each database is throttled. */
import { startFarDatabases } from '../bridge.ts'
import { measure } from '../measure.ts'
import type { Stack } from '../run.ts'
import type { VariantId } from '../variants.ts'

export interface Databases {
  /** Maximum commands per second of each database. */
  maxCommands: number
  scale: Scale[]
}

export interface Scale {
  databases: number
  /** True if the isolate batches calls. Requests of different isolates are never in one batch. */
  batching: boolean
  perSecond: number
  /** Billed commands per decision. */
  billed: number
  failed: number
}

/** Low enough that neither Redis, the bridge nor the Worker is the bottleneck. */
const MAX_COMMANDS = 400
const RTT_MS = 10
const quotas = [{ limit: 1_000_000, windowMs: 3_600_000 }]
const contenders: [id: VariantId, databases: number, batching: boolean][] = [
  ['ours-unbatched', 1, false],
  ['ours-shards-2-unbatched', 2, false],
  ['ours-shards-4-unbatched', 4, false],
  ['ours', 1, true],
  ['ours-shards-2', 2, true],
  ['ours-shards-4', 4, true],
]

/** @param seconds of load for each number of databases */
export async function measureDatabases(stack: Stack, seconds: number): Promise<Databases> {
  const scale: Databases['scale'] = []
  for (const [id, databases, batching] of contenders) {
    scale.push({ databases, batching, ...(await throughput(stack, databases, id, seconds * 1000)) })
  }
  return { maxCommands: MAX_COMMANDS, scale }
}

async function throughput(
  { server, load, workers }: Stack,
  databases: number,
  id: VariantId,
  ms: number,
): Promise<Omit<Scale, 'databases' | 'batching'>> {
  await server.send('FLUSHALL')
  const urls = Array.from({ length: databases }, (_, n) => [`db-${n + 1}`, `${server.url}/${n}`])
  const far = await startFarDatabases(Object.fromEntries(urls), RTT_MS, MAX_COMMANDS)
  const isolate = await workers.start(id, quotas, far)
  const order = { ports: [isolate.port], network: 0, clients: 10_000, connections: 128 }
  try {
    await load.run({ ...order, ms: 1000 }) // saturates each database
    const sample = await measure({ server, far, load }, [isolate.pid], { ...order, ms })
    const { perSecond, billed, count, statuses } = sample
    return { perSecond, billed, failed: count - (statuses[200] ?? 0) }
  } finally {
    await isolate.stop()
    await far.stop()
  }
}
