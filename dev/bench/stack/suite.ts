/** A whole run: the workloads, Redis by itself, the legs. */
import type { BenchServer } from '../server.ts'
import { measureExactness } from './legs/exactness.ts'
import { measureGreedy } from './legs/greedy.ts'
import { soak } from './legs/soak.ts'
import { measureWaits } from './legs/waits.ts'
import type { Load } from './load.ts'
import { measureRedisCost } from './redis-cost.ts'
import { figure, type Results } from './results.ts'
import { runWorkload, type Samples } from './run.ts'
import { type VariantId, variants } from './variants.ts'
import { workloads } from './workloads.ts'

export interface Plan {
  rounds: number
  turnMs: number
  soakSeconds: number
  /** Windows for which greedy clients knock. */
  greedyWindows: number
  redisRounds: number
  /** Ids of workloads and of parts; by default all. */
  only?: string[] | undefined
  /** Fewer variants and workloads. */
  quick: boolean
  binary?: string | undefined
}

export const thorough: Plan = {
  rounds: 5,
  turnMs: 1500,
  soakSeconds: 10,
  greedyWindows: 10,
  redisRounds: 7,
  quick: false,
}

/** Under a minute: whether all is there, and about how much it is. */
export const quick: Plan = {
  rounds: 1,
  turnMs: 200,
  soakSeconds: 3,
  greedyWindows: 2,
  redisRounds: 0,
  quick: true,
}

/** The same variants, but for those that a quick run leaves out. */
const isQuick = (id: VariantId) =>
  variants[id].by !== 'peer' || ['upstash-sliding', 'upstash-sliding-cache', 'hono'].includes(id)

export async function runAll(
  server: BenchServer,
  load: Load,
  plan: Plan,
  log: (line: string) => void,
): Promise<Results> {
  const { rounds, turnMs, binary, only } = plan
  const wanted = (id: string) => only?.includes(id) ?? true
  const part = async <Result>(id: string, run: () => Promise<Result>, nothing: Result) => {
    if (!wanted(id)) return nothing
    log(id)
    return run()
  }
  const results: Results = {
    workloads: {},
    redis: [],
    exactness: [],
    waits: [],
    greedy: [],
    soak: undefined,
  }
  for (const workload of workloads) {
    if (!wanted(workload.id) || (plan.quick && workload.thorough && !only)) continue
    const taking = plan.quick ? workload.variants.filter(isQuick) : undefined
    const options = { rounds, turnMs, binary, log, only: taking }
    const samples = await runWorkload(workload, server, load, options)
    expectWarmScripts(samples)
    results.workloads[workload.id] = samples
  }
  results.exactness = await part('exactness', () => measureExactness(server, load, binary), [])
  results.waits = await part('waits', () => measureWaits(server, binary), [])
  results.greedy = await part('greedy', () => measureGreedy(server, plan.greedyWindows, binary), [])
  results.soak = await part('soak', () => soak(server, load, plan.soakSeconds, binary), undefined)
  if (plan.redisRounds > 0) {
    results.redis = await part('redis', () => measureRedisCost(server, plan.redisRounds, log), [])
  }
  return results
}

/** A bridge that does not know the peer's scripts again makes each of its decisions two calls, and us look twice as good. */
function expectWarmScripts(samples: Samples) {
  for (const id of Object.keys(samples) as VariantId[]) {
    if (!/^upstash-[a-z]+$/.test(id)) continue
    const { max } = figure(samples, id, ({ calls }) => calls)!
    if (max > 1.02) throw new Error(`${variants[id].name} made ${max} HTTP calls a decision`)
  }
}
