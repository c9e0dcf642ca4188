import { setTimeout as sleep } from 'node:timers/promises'
import { newClient } from './client.ts'
import { freePort } from './free-port.ts'
import { type RunningRedis, startRedis } from './redis.ts'
import { SLOTS } from './slot.ts'

export type ClusterOptions = {
  /** Number of masters. They share the slots equally. Defaults to 3. */
  masters?: number
  /** Replicas of each master. Defaults to 1. */
  replicas?: number
  /** Time in ms after which a node that does not respond counts as failed. Defaults to 2000. */
  nodeTimeout?: number
  /** Additional arguments for each server. Defaults to none. */
  args?: string[]
}

export type RunningCluster = {
  /** The masters, then the replicas in the order of their masters. */
  nodes: RunningRedis[]
  /** The URLs of the nodes. */
  urls: string[]
  stop(): Promise<void>
}

/** How long the nodes may take to form the cluster, in ms. */
const START_MS = 30_000

/**
 * Starts a Redis Cluster on free loopback ports, without persistence. Uses the binary that `startRedis` finds.
 *
 * @example
 * const cluster = await startCluster({ masters: 3, replicas: 1 })
 * const bridge = await startBridge({ cluster: cluster.urls })
 *
 * @throws Error when a server does not start or the nodes do not form a cluster.
 */
export async function startCluster(options: ClusterOptions = {}): Promise<RunningCluster> {
  const { masters = 3, replicas = 1, nodeTimeout = 2000, args = [] } = options
  const nodes: RunningRedis[] = []
  const stop = async () => {
    await Promise.all(nodes.map((node) => node.stop()))
  }
  try {
    const count = masters * (1 + replicas)
    const started = await Promise.allSettled(
      Array.from({ length: count }, () => startNode(nodeTimeout, args)),
    )
    for (const one of started) if (one.status === 'fulfilled') nodes.push(one.value)
    for (const one of started) if (one.status === 'rejected') throw one.reason
    await form(nodes, masters)
  } catch (error) {
    await stop()
    throw error
  }
  return { nodes, urls: nodes.map(({ url }) => url), stop }
}

/** Starts an empty node, which `startCluster` or CLUSTER MEET adds to a cluster. */
export async function startNode(nodeTimeout = 2000, args: string[] = []): Promise<RunningRedis> {
  for (let attempt = 1; ; attempt++) {
    // The default port of the cluster bus, port + 10,000, may exceed 65,535.
    const bus = await freePort()
    const cluster = ['--cluster-enabled', 'yes', '--cluster-port', `${bus}`]
    const timing = ['--cluster-node-timeout', `${nodeTimeout}`, '--repl-diskless-sync-delay', '0']
    try {
      return await startRedis({ own: true, args: [...cluster, ...timing, ...args] })
    } catch (error) {
      if (attempt === 3) throw error // another process has taken the port of the bus
    }
  }
}

async function form(nodes: RunningRedis[], masters: number): Promise<void> {
  const clients = await Promise.all(
    nodes.map(({ url }) =>
      newClient({ url })
        .on('error', () => {})
        .connect(),
    ),
  )
  const until = Date.now() + START_MS
  const each = (work: (client: (typeof clients)[0], index: number) => Promise<unknown>) =>
    Promise.all(clients.map(work))
  const waitFor = async (what: string, isTrue: () => Promise<boolean>) => {
    while (!(await isTrue())) {
      if (Date.now() > until) throw new Error(`The nodes of the cluster did not start: ${what}`)
      await sleep(50)
    }
  }
  const knows = async (text: string, command: string[]) =>
    (await each((client) => client.sendCommand(command))).every((reply) =>
      String(reply).includes(text),
    )
  try {
    await each(async (client, index) => {
      await client.sendCommand(['CLUSTER', 'SET-CONFIG-EPOCH', `${index + 1}`])
      if (index >= masters) return
      const first = Math.ceil((index * SLOTS) / masters)
      const last = Math.ceil(((index + 1) * SLOTS) / masters) - 1
      await client.sendCommand(['CLUSTER', 'ADDSLOTSRANGE', `${first}`, `${last}`])
    })
    const { hostname, port } = new URL(nodes[0]!.url)
    const [own] = String(await clients[0]!.sendCommand(['CLUSTER', 'NODES']))
      .split(' ')
      .slice(1)
    const bus = /@(\d+)/.exec(own ?? '')?.[1] ?? ''
    await each((client, index) =>
      index === 0
        ? Promise.resolve()
        : client.sendCommand(['CLUSTER', 'MEET', hostname, port, bus]),
    )
    const known = `cluster_known_nodes:${nodes.length}\r`
    await waitFor('they do not know each other', () => knows(known, ['CLUSTER', 'INFO']))
    const ids = await each((client) => client.sendCommand(['CLUSTER', 'MYID']))
    await each(async (client, index) => {
      if (index < masters) return
      await client.sendCommand(['CLUSTER', 'REPLICATE', String(ids[index % masters])])
    })
    await waitFor('its state is not ok', () => knows('cluster_state:ok', ['CLUSTER', 'INFO']))
    await waitFor('its replicas are not connected', async () => {
      const roles = await each((client) => client.sendCommand(['ROLE']))
      return roles.every((role, index) => index < masters || String(role).includes(',connected,'))
    })
  } finally {
    for (const client of clients) client.destroy()
  }
}
