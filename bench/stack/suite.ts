/** A whole run: the workloads, the other measurements, and Redis alone. */
import { measureDatabases } from './legs/databases.ts'
import { measureExactness } from './legs/exactness.ts'
import { measureGreedy } from './legs/greedy.ts'
import { measureIsolates } from './legs/isolates.ts'
import { measureOverload } from './legs/overload.ts'
import { measureParallel } from './legs/parallel.ts'
import { measureProfile } from './legs/profile.ts'
import { measureShield } from './legs/shield.ts'
import { soak } from './legs/soak.ts'
import { measureWaits } from './legs/waits.ts'
import { measureRedisCost } from './redis-cost.ts'
import { figure, type Results } from './results.ts'
import { runWorkload, type Samples, type Stack } from './run.ts'
import { exists, type VariantId, variants } from './variants.ts'
import { workloads } from './workloads.ts'

export interface Plan {
  rounds: number
  turnMs: number
  soakSeconds: number
  /** Number of windows in which greedy clients send requests. */
  greedyWindows: number
  redisRounds: number
  /** Ids of workloads and other parts. Defaults to all. */
  only?: string[] | undefined
  /** Skips some variants and workloads. */
  quick: boolean
}

export const thorough: Plan = {
  rounds: 5,
  turnMs: 1000,
  soakSeconds: 60,
  greedyWindows: 10,
  redisRounds: 7,
  quick: false,
}

/** A short run of less than a minute, for a first impression. */
export const quick: Plan = {
  rounds: 1,
  turnMs: 200,
  soakSeconds: 3,
  greedyWindows: 2,
  redisRounds: 0,
  quick: true,
}

/** True for the variants of a quick run, which skips most variants of other limiters. */
const isQuick = (id: VariantId) =>
  variants[id].by !== 'peer' || ['upstash-sliding', 'upstash-sliding-cache', 'hono'].includes(id)

export async function runAll(
  parts: Omit<Stack, 'takes'>,
  plan: Plan,
  log: (line: string) => void,
): Promise<Results> {
  const { rounds, turnMs, only } = plan
  const takes = (id: VariantId) => exists(id) && (!plan.quick || isQuick(id))
  const stack: Stack = { ...parts, takes }
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
    isolates: [],
    soak: undefined,
    profiles: [],
  }
  for (const workload of workloads) {
    if (!wanted(workload.id) || (plan.quick && workload.thorough && !only)) continue
    const samples = await runWorkload(workload, stack, { rounds, turnMs, log })
    expectWarmScripts(samples)
    results.workloads[workload.id] = samples
  }
  results.exactness = await part('exactness', () => measureExactness(stack), [])
  results.waits = await part('waits', () => measureWaits(stack), [])
  results.greedy = await part('greedy', () => measureGreedy(stack, plan.greedyWindows), [])
  if (!plan.quick || only) {
    results.isolates = await part('isolates', () => measureIsolates(stack, 6), [])
  }
  results.soak = await part('soak', () => soak(stack, plan.soakSeconds), undefined)
  if (!plan.quick) results.profiles = await part('profile', () => measureProfile(stack), [])
  if (!plan.quick || only) {
    results.databases = await part('databases', () => measureDatabases(stack, 3), undefined)
  }
  const options = { rounds, turnMs, log }
  results.parallel = await part('parallel', () => measureParallel(stack, options), undefined)
  if (!plan.quick) results.shield = await part('shield', () => measureShield(stack), undefined)
  const scenarios = overloadsIn(only) ?? (plan.quick ? [] : undefined)
  if (scenarios?.length !== 0) {
    const seconds = plan.quick ? 5 : 20
    log('overload')
    results.overload = await measureOverload(stack, { seconds, log, scenarios })
  }
  if (plan.redisRounds > 0) {
    results.redis = await part(
      'redis',
      () => measureRedisCost(stack.server, plan.redisRounds, log),
      [],
    )
  }
  return results
}

/** Checks that the bridge knows the scripts of the peer. Otherwise each of its decisions would take two calls. */
function expectWarmScripts(samples: Samples) {
  for (const id of Object.keys(samples) as VariantId[]) {
    if (!/^upstash-[a-z]+$/.test(id)) continue
    const { max } = figure(samples, id, ({ calls }) => calls)!
    if (max > 1.02) throw new Error(`${variants[id].name} made ${max} HTTP calls per decision`)
  }
}

/** The overload scenarios that `--only` names, such as `overload-query`; `undefined` means all. */
function overloadsIn(only: string[] | undefined): string[] | undefined {
  if (!only || only.includes('overload')) return undefined
  return only.flatMap((id) => /^overload-(.+)$/.exec(id)?.[1] ?? [])
}
