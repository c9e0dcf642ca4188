import { createCluster } from 'redis'
import { type RedisTarget, type RunningCluster, startCluster } from '../src/index.ts'

/** Sends a command to Redis without the bridge. */
export type Direct = (...command: string[]) => Promise<unknown>

/** A Redis for one bridge. */
export type TestRedis = { target: RedisTarget; direct: Direct; stop(): Promise<void> }

/** The clusters of this process. A cluster takes seconds to start, so the test files share them one after another. */
type Pool = { cluster: Promise<RunningCluster>; isFree: boolean }[]
const shared = globalThis as typeof globalThis & { bridgeClusters?: Pool }

/** An empty cluster of three masters and three replicas, which no other test uses. It ends with this process. */
export async function borrowCluster(): Promise<TestRedis> {
  shared.bridgeClusters ??= []
  const pool = shared.bridgeClusters
  let entry = pool.find(({ isFree }) => isFree)
  if (!entry) {
    entry = { cluster: startCluster(), isFree: false }
    pool.push(entry)
  }
  const mine = entry
  mine.isFree = false
  const { urls } = await mine.cluster
  const { direct, close } = await clusterClient(urls)
  for (const command of ['FLUSHALL', 'SCRIPT FLUSH', 'FUNCTION FLUSH', 'CONFIG RESETSTAT']) {
    await direct(...command.split(' '))
  }
  return {
    target: { cluster: urls },
    direct,
    stop: async () => {
      await close()
      mine.isFree = true
    },
  }
}

/** Sends commands with the cluster client of the package `redis`, which shares no code with the bridge's slot map. */
export async function clusterClient(urls: string[]) {
  const client = createCluster({ rootNodes: urls.map((url) => ({ url })), RESP: 2 })
  client.on('error', () => {})
  await client.connect()
  const nodes = () => Promise.all(client.masters.map((master) => client.nodeClient(master)))
  const direct: Direct = async (...command) => {
    if (/^(flushall|script|function|config|info)$/i.test(command[0]!)) {
      const all = await Promise.all((await nodes()).map((node) => node.sendCommand(command)))
      return command[0] === 'INFO' ? all.join('\n') : all[0]
    }
    const first = await client.nodeClient(client.slots[0]!.master) // has the pub/sub of the bridge
    const keys = await first.sendCommand(['COMMAND', 'GETKEYS', ...command]).catch(() => [])
    const [key] = keys as unknown as string[]
    return key === undefined ? first.sendCommand(command) : client.sendCommand(key, false, command)
  }
  return { direct, nodes, close: async () => client.destroy() }
}
