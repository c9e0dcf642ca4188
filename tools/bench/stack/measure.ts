import type { BenchServer } from '../server.ts'
import { quantile } from '../statistics.ts'
import type { FarRedis } from './bridge.ts'
import { cpuOf } from './cpu.ts'
import type { Order, Outcome } from './load/order.ts'
import type { Load } from './load.ts'

/** The results of one variant in one round of a workload. Values per request are means; `undefined` if there is too little data. */
export interface Sample {
  count: number
  statuses: Outcome['statuses']
  perSecond: number
  /** Latency in ms. */
  p50: number
  latencies: Float64Array
  /** Per request: HTTP requests to Redis, and commands that Upstash would bill, including those inside scripts. */
  calls: number
  billed: number
  /** CPU time per request in µs: of the Worker's process, and of the main thread of Redis. */
  workerUs: number | undefined
  redisUs: number | undefined
  /** The load generator: its CPU usage (1 is one CPU), and the delay of its requests in ms. */
  busy: number
  lateMs: number
}

/** The tools of a measurement. */
export interface Bench {
  server: BenchServer
  far: FarRedis
  load: Load
}

/** Minimum number of requests for the CPU of Redis. With fewer, the commands of the benchmark itself would matter. */
const ENOUGH = 500

export async function measure(bench: Bench, pids: number[], order: Order): Promise<Sample> {
  const before = await snapshot(bench, pids)
  const outcome = await bench.load.run(order)
  const after = await snapshot(bench, pids)
  const { count, latencies, elapsedMs, statuses, busy, lateMs } = outcome
  const each = (from: number | undefined, to: number | undefined, scale: number) =>
    from === undefined || to === undefined ? undefined : ((to - from) * scale) / count
  return {
    count,
    statuses,
    perSecond: (count * 1000) / elapsedMs,
    p50: quantile(latencies, 0.5),
    latencies,
    calls: each(before.calls, after.calls, 1)!,
    billed: each(before.billed, after.billed, 1)!,
    workerUs: each(before.workerMs, after.workerMs, 1000),
    redisUs: count < ENOUGH ? undefined : each(before.redisUs, after.redisUs, 1),
    busy,
    lateMs,
  }
}

async function snapshot({ server, far }: Bench, pids: number[]) {
  const used = await Promise.all(pids.map(cpuOf))
  return {
    calls: await far.calls(),
    billed: await billed(server),
    redisUs: await server.cpu(),
    workerMs: used.includes(undefined) ? undefined : used.reduce((sum, ms) => sum! + ms!, 0),
  }
}

/** Commands of the benchmark itself, which Upstash would not bill. */
const OURS = /^(info|config|flushall|memory|scan|command|function|client|hello|ping|script)\b/

/** Commands that Upstash would have billed so far. */
export async function billed(server: BenchServer): Promise<number> {
  let calls = 0
  for (const [name, stats] of await server.commandStats())
    if (!OURS.test(name)) calls += stats.calls
  return calls
}
