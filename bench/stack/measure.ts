import type { BenchServer } from '../server.ts'
import { quantile } from '../statistics.ts'
import type { FarRedis } from './bridge.ts'
import { cpuOf } from './cpu.ts'
import type { Order, Outcome } from './load/order.ts'
import type { Load } from './load.ts'

/** One variant under one workload in one round. What is of one request is its mean; absent: too little of it to tell. */
export interface Sample {
  count: number
  statuses: Outcome['statuses']
  perSecond: number
  /** ms */
  p50: number
  p99: number
  latencies: Float64Array
  /** HTTP requests to Redis, and commands that Upstash would bill, those inside of scripts too. */
  calls: number
  billed: number
  /** µs of the Worker's process, and of the thread of Redis that runs the commands. */
  workerUs: number | undefined
  redisUs: number | undefined
  /** Of the load itself: the share of a processor, and ms by which its sends were late. */
  busy: number
  lateMs: number
}

/** What a variant is measured with. */
export interface Bench {
  server: BenchServer
  far: FarRedis
  load: Load
}

/** Fewer requests than this, and what the bench itself asks of Redis would show. */
const ENOUGH = 1000

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
    p99: quantile(latencies, 0.99),
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

/** What nobody pays for: the bench's own questions and preparations. */
const OURS = /^(info|config|flushall|memory|scan|command|function|client|hello|ping|script)\b/

/** Commands that Upstash would have billed so far. */
export async function billed(server: BenchServer): Promise<number> {
  let calls = 0
  for (const [name, stats] of await server.commandStats())
    if (!OURS.test(name)) calls += stats.calls
  return calls
}
