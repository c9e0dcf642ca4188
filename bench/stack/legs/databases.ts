/** Measures shards: decisions per second if each database is throttled, and the requests that Redis decides when one of two is down. */
import { setTimeout as sleep } from 'node:timers/promises'
import { startRedis } from 'sluice-upstash-bridge'
import { rendezvous } from '../../../src/store/shards/rendezvous.ts'
import { startFarDatabases } from '../bridge.ts'
import { Connection } from '../load/connection.ts'
import { addressOf } from '../load/order.ts'
import type { Stack } from '../run.ts'
import type { VariantId } from '../variants.ts'

export interface Databases {
  /** Maximum commands per second of each database. */
  maxCommands: number
  scale: Scale[]
  /** After one of two databases was killed: requests of the clients of each, and those that a fallback decided. */
  killed: { living: Tally; dead: Tally }
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

interface Tally {
  requests: number
  fallback: number
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
const namesOf = (count: number) => Array.from({ length: count }, (_, n) => `db-${n + 1}`)

/** @param seconds of load for each number of databases */
export async function measureDatabases(stack: Stack, seconds: number): Promise<Databases> {
  const scale: Databases['scale'] = []
  for (const [id, databases, batching] of contenders) {
    scale.push({ databases, batching, ...(await measure(stack, databases, id, seconds * 1000)) })
  }
  return { maxCommands: MAX_COMMANDS, scale, killed: await kill(stack) }
}

async function measure(
  { server, load, workers }: Stack,
  databases: number,
  id: VariantId,
  ms: number,
): Promise<Omit<Scale, 'databases' | 'batching'>> {
  await server.send('FLUSHALL')
  const urls = namesOf(databases).map((name, index) => [name, `${server.url}/${index}`])
  const far = await startFarDatabases(Object.fromEntries(urls), RTT_MS, MAX_COMMANDS)
  const isolate = await workers.start(id, quotas, far)
  const order = { ports: [isolate.port], network: 0, clients: 10_000, connections: 128 }
  try {
    await load.run({ ...order, ms: 1000 }) // saturates each database
    const before = await billed(server)
    const { statuses, count, elapsedMs } = await load.run({ ...order, ms })
    const commands = (await billed(server)) - before
    const admitted = statuses[200] ?? 0
    return {
      perSecond: (admitted * 1000) / elapsedMs,
      billed: commands / count,
      failed: count - admitted,
    }
  } finally {
    await isolate.stop()
    await far.stop()
  }
}

async function billed(server: Stack['server']): Promise<number> {
  const stats = await server.commandStats()
  const names = ['eval', 'evalsha', 'time', 'mget', 'set']
  return names.reduce((sum, name) => sum + (stats.get(name)?.calls ?? 0), 0)
}

async function kill({ workers }: Stack): Promise<Databases['killed']> {
  const names = namesOf(2)
  const shardOf = rendezvous(names)
  const servers = await Promise.all(names.map(() => startRedis()))
  const urls = names.map((name, index) => [name, servers[index]!.url])
  const far = await startFarDatabases(Object.fromEntries(urls), RTT_MS, 100_000)
  const isolate = await workers.start('ours-shards-2', quotas, far)
  const tallies = names.map((): Tally => ({ requests: 0, fallback: 0 }))
  let killed = false
  let running = true
  async function loop() {
    const connection = new Connection(isolate.port)
    while (running) {
      const address = addressOf(0, Math.floor(Math.random() * 1000))
      const counts = killed // count only requests sent after the database was killed
      const status = await new Promise<number>((resolve) => connection.ask(address, resolve))
      const tally = tallies[shardOf(`ip=${address}`)]!
      if (!counts) continue
      tally.requests++
      if (status !== 200) tally.fallback++
    }
    connection.hangUp()
  }
  try {
    const loops = Array.from({ length: 32 }, loop)
    await sleep(500)
    await servers[1]!.stop()
    killed = true
    await sleep(3000)
    running = false
    await Promise.all(loops)
    return { living: tallies[0]!, dead: tallies[1]! }
  } finally {
    running = false
    await isolate.stop()
    await far.stop()
    await Promise.all(servers.map((one) => one.stop()))
  }
}
