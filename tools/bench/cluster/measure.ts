/** Measures decisions per second while a Redis Cluster grows. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type FarRedis, startFarCluster } from '../stack/bridge.ts'
import type { Order } from '../stack/load/order.ts'
import type { Load } from '../stack/load.ts'
import type { Workers } from '../stack/workers.ts'
import { type GrowingCluster, startGrowingCluster } from './grow.ts'

export interface ClusterScale {
  /** Maximum commands per second of each master. */
  maxCommands: number
  steps: Step[]
}

/** The measurement with one number of masters. */
export interface Step {
  masters: number
  perSecond: number
  /** Decisions that were neither admitted nor refused. */
  failed: number
  /** The commands that each master received per second. */
  commands: number[]
  /** The online resharding before this step; absent for the first master. */
  moved?: { slots: number; seconds: number; decisions: number; failed: number }
}

export interface ClusterOptions {
  masters: number
  maxCommands: number
  /** Duration of the measurement with each number of masters. */
  seconds: number
  log(line: string): void
}

const RTT_MS = 10
/** Time until the queue of each master is full. */
const FILL_MS = 2000
const HOUR_MS = 3_600_000
/** More requests at once than the queues of all masters need to be never empty. */
const CONNECTIONS = 192
const CLIENTS = 50_000

export async function measureCluster(
  { load, workers }: { load: Load; workers: Workers },
  { masters, maxCommands, seconds, log }: ClusterOptions,
): Promise<ClusterScale> {
  const cluster = await startGrowingCluster(maxCommands)
  const far = await startFarCluster(cluster.url, RTT_MS)
  const quotas = [{ limit: 1_000_000, windowMs: HOUR_MS }]
  const isolate = await workers.start('ours-unbatched', quotas, far)
  const order = {
    ports: [isolate.port],
    network: 0,
    clients: CLIENTS,
    connections: CONNECTIONS,
  }
  const steps: Step[] = []
  try {
    for (let count = 1; count <= masters; count++) {
      const moved = count > 1 ? await grow(cluster, load, order) : undefined
      if (moved) log(`${moved.slots} slots moved in ${moved.seconds.toFixed(1)} s`)
      const running = load.run({ ...order, ms: FILL_MS + (seconds + 1) * 1000 })
      await sleep(FILL_MS)
      const before = await snapshot(cluster, far)
      await sleep(seconds * 1000)
      const after = await snapshot(cluster, far)
      // At the end of a run the queues become empty one after another, so the measurement ends before.
      const { count: all, statuses } = await running
      const perSecond = (from: number, to: number) => ((to - from) * 1000) / (after.at - before.at)
      steps.push({
        masters: count,
        perSecond: perSecond(before.decisions, after.decisions),
        failed: all - (statuses[200] ?? 0),
        commands: after.commands.map((commands, n) => perSecond(before.commands[n]!, commands)),
        ...(moved && { moved }),
      })
      log(`${count} masters: ${Math.round(steps.at(-1)!.perSecond)} decisions/s`)
    }
    return { maxCommands, steps }
  } finally {
    await isolate.stop()
    await far.stop()
    await cluster.stop()
  }
}

/** Without batching each decision is one HTTP request to the bridge. */
async function snapshot({ gates }: GrowingCluster, far: FarRedis) {
  const decisions = await far.calls()
  return { at: performance.now(), decisions, commands: gates.map((gate) => gate.passed()) }
}

/** Adds a master and moves slots to it, under load. */
async function grow(cluster: GrowingCluster, load: Load, order: Order): Promise<Step['moved']> {
  const start = performance.now()
  let isGrown = false
  const growing = cluster.grow().finally(() => {
    isGrown = true
  })
  let [decisions, failed] = [0, 0]
  while (!isGrown) {
    const { count, statuses } = await load.run({ ...order, ms: 500 })
    decisions += count
    failed += count - (statuses[200] ?? 0)
  }
  const slots = await growing
  return { slots, seconds: (performance.now() - start) / 1000, decisions, failed }
}
