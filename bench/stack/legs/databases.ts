/** What more databases are good for: decisions a second where each takes only so many commands, and what is left when one is away. */
import { setTimeout as sleep } from 'node:timers/promises'
import { startRedis } from 'sluice-upstash-bridge'
import { rendezvous } from '../../../src/store/shards/rendezvous.ts'
import { startFarDatabases } from '../bridge.ts'
import { Connection } from '../load/connection.ts'
import { addressOf } from '../load/order.ts'
import type { Stack } from '../run.ts'
import type { VariantId } from '../variants.ts'

export interface Databases {
  /** Commands a second that each takes. */
  maxCommands: number
  scale: Scale[]
  /** Of two databases one was killed: requests from then on, and how many of them were not decided by Redis. */
  killed: { living: Tally; dead: Tally }
}

export interface Scale {
  databases: number
  /** Whether requests of the isolate share calls. Those of many isolates do not. */
  shared: boolean
  perSecond: number
  /** Commands of each decision. */
  billed: number
  failed: number
}

interface Tally {
  requests: number
  fallback: number
}

/** So few that neither Redis, the bridge nor the Worker is what limits. */
const MAX_COMMANDS = 400
const RTT_MS = 10
const quotas = [{ limit: 1_000_000, windowMs: 3_600_000 }]
const contenders: [id: VariantId, databases: number, shared: boolean][] = [
  ['ours-unshared', 1, false],
  ['ours-shards-2-unshared', 2, false],
  ['ours-shards-4-unshared', 4, false],
  ['ours', 1, true],
  ['ours-shards-2', 2, true],
  ['ours-shards-4', 4, true],
]
const namesOf = (count: number) => Array.from({ length: count }, (_, n) => `db-${n + 1}`)

/** @param seconds of load for each number of databases */
export async function measureDatabases(stack: Stack, seconds: number): Promise<Databases> {
  const scale: Databases['scale'] = []
  for (const [id, databases, shared] of contenders) {
    scale.push({ databases, shared, ...(await measure(stack, databases, id, seconds * 1000)) })
  }
  return { maxCommands: MAX_COMMANDS, scale, killed: await kill(stack) }
}

async function measure(
  { server, load, workers }: Stack,
  databases: number,
  id: VariantId,
  ms: number,
): Promise<Omit<Scale, 'databases' | 'shared'>> {
  await server.send('FLUSHALL')
  const urls = namesOf(databases).map((name, index) => [name, `${server.url}/${index}`])
  const far = await startFarDatabases(Object.fromEntries(urls), RTT_MS, MAX_COMMANDS)
  const isolate = await workers.start(id, quotas, far)
  const order = { ports: [isolate.port], network: 0, clients: 10_000, connections: 128 }
  try {
    await load.run({ ...order, ms: 1000 }) // until each database has more to do than it can
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
  const placeOf = rendezvous(names)
  const servers = await Promise.all(names.map(() => startRedis()))
  const urls = names.map((name, index) => [name, servers[index]!.url])
  const far = await startFarDatabases(Object.fromEntries(urls), RTT_MS, 100_000)
  const isolate = await workers.start('ours-shards-2', quotas, far)
  const tallies = names.map((): Tally => ({ requests: 0, fallback: 0 }))
  let killed = false
  let goesOn = true
  async function ask() {
    const connection = new Connection(isolate.port)
    while (goesOn) {
      const address = addressOf(0, Math.floor(Math.random() * 1000))
      const counts = killed // asked after it was
      const status = await new Promise<number>((resolve) => connection.ask(address, resolve))
      const tally = tallies[placeOf(`ip=${address}`)]!
      if (!counts) continue
      tally.requests++
      if (status !== 200) tally.fallback++
    }
    connection.hangUp()
  }
  try {
    const asking = Array.from({ length: 32 }, ask)
    await sleep(500)
    await servers[1]!.stop()
    killed = true
    await sleep(3000)
    goesOn = false
    await Promise.all(asking)
    return { living: tallies[0]!, dead: tallies[1]! }
  } finally {
    goesOn = false
    await isolate.stop()
    await far.stop()
    await Promise.all(servers.map((one) => one.stop()))
  }
}
