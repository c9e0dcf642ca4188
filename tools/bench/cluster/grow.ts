/** A Redis Cluster that gets more masters while it runs, each behind a gate. */
import { createClient } from 'redis'
import { type RunningRedis, SLOTS, startCluster, startNode } from 'sluice-upstash-bridge'
import { type Gate, startGate } from './gate.ts'

const NODE_TIMEOUT_MS = 5000
/** Slots that move at the same time. A node writes its configuration to the disk once for commands that arrive together. */
const BATCH = 128

export interface GrowingCluster {
  /** The URL of the gate of the first master. */
  url: string
  /** The gate of each master. */
  gates: Gate[]
  /** Adds a master, and moves an equal part of the slots of each other master to it. @returns the number of slots */
  grow(): Promise<number>
  stop(): Promise<void>
}

/** A master with a connection that does not pass through its gate. */
interface Master {
  gate: Gate
  id: string
  port: number
  send(...command: string[]): Promise<unknown>
  /** Its slots, at the end those that move first. */
  slots: number[]
  stop(): Promise<void>
}

/** Starts a cluster of one master. @param perSecond maximum commands per second of each master */
export async function startGrowingCluster(perSecond: number): Promise<GrowingCluster> {
  const masters: Master[] = []
  // The nodes name their gates in CLUSTER SLOTS and in MOVED, so that clients connect to the gates.
  const start = async (run: (args: string[]) => Promise<RunningRedis>) => {
    const gate = await startGate(perSecond)
    const port = `${gate.port}`
    try {
      const redis = await run([
        '--cluster-announce-ip',
        '127.0.0.1',
        '--cluster-announce-port',
        port,
      ])
      masters.push(await masterOf(redis, gate))
    } catch (error) {
      gate.close()
      throw error
    }
    return masters.at(-1)!
  }
  const first = await start(async (args) => {
    const options = { masters: 1, replicas: 0, nodeTimeout: NODE_TIMEOUT_MS, args }
    const cluster = await startCluster(options)
    return { ...cluster.nodes[0]!, stop: cluster.stop }
  })
  first.slots = Array.from({ length: SLOTS }, (_, slot) => slot)
  return {
    url: `redis://127.0.0.1:${first.gate.port}`,
    get gates() {
      return masters.map(({ gate }) => gate)
    },
    async grow() {
      const added = await start((args) => startNode(NODE_TIMEOUT_MS, args))
      await meet(added, masters)
      const share = Math.floor(SLOTS / masters.length)
      const sources = masters.slice(0, -1)
      while (added.slots.length < share) {
        const batch = Array.from(
          { length: Math.min(BATCH, share - added.slots.length) },
          (): [slot: number, from: Master] => {
            // Each slot comes from the master that has the most, so that all end with the same number.
            const from = sources.reduce((one, other) =>
              one.slots.length >= other.slots.length ? one : other,
            )
            return [from.slots.pop()!, from]
          },
        )
        await Promise.all(batch.map(([slot, from]) => moveSlot(slot, from, added, masters)))
        added.slots.push(...batch.map(([slot]) => slot))
      }
      return share
    },
    async stop() {
      await Promise.all(masters.map((master) => master.stop()))
    },
  }
}

async function masterOf(redis: RunningRedis, gate: Gate): Promise<Master> {
  const port = Number(new URL(redis.url).port)
  gate.open(port)
  const client = await createClient({ url: redis.url, RESP: 2 })
    .on('error', () => {})
    .connect()
  return {
    gate,
    id: String(await client.sendCommand(['CLUSTER', 'MYID'])),
    port,
    send: (...command) => client.sendCommand(command),
    slots: [],
    async stop() {
      client.destroy()
      gate.close()
      await redis.stop()
    },
  }
}

/** Introduces a new node to the others, and waits until all agree. */
async function meet(added: Master, all: Master[]): Promise<void> {
  const bus = /@(\d+)/.exec(String(await added.send('CLUSTER', 'NODES')))?.[1]
  await all[0]!.send('CLUSTER', 'MEET', '127.0.0.1', `${added.port}`, `${bus}`)
  const line = new RegExp(`^${added.id} \\S+:${added.gate.port}@\\S+ (myself,)?master `, 'm')
  for (const master of all) {
    while (!line.test(String(await master.send('CLUSTER', 'NODES')))) await pause()
    while (!String(await master.send('CLUSTER', 'INFO')).includes('cluster_state:ok')) await pause()
  }
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 20))

/** Moves a slot with its keys, as `redis-cli --cluster reshard` does. */
async function moveSlot(slot: number, from: Master, to: Master, all: Master[]): Promise<void> {
  await to.send('CLUSTER', 'SETSLOT', `${slot}`, 'IMPORTING', from.id)
  await from.send('CLUSTER', 'SETSLOT', `${slot}`, 'MIGRATING', to.id)
  for (;;) {
    const keys = (await from.send('CLUSTER', 'GETKEYSINSLOT', `${slot}`, '100')) as string[]
    if (keys.length === 0) break
    await from.send('MIGRATE', '127.0.0.1', `${to.port}`, '', '0', '5000', 'KEYS', ...keys)
  }
  // The new owner first: a cluster never has a slot without an owner.
  const rest = all.filter((master) => master !== to)
  for (const master of [to, ...rest]) {
    await master.send('CLUSTER', 'SETSLOT', `${slot}`, 'NODE', to.id)
  }
}
