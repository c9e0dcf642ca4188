/** A whole run: the parts of the verdict, and the other measurements. */
import { measureClients } from './legs/clients.ts'
import { measureColdStarts } from './legs/cold-start.ts'
import { measureExactness } from './legs/exactness.ts'
import { measureIsolates } from './legs/isolates.ts'
import { measureShield } from './legs/shield.ts'
import { measureSizes, measureWholes } from './legs/size.ts'
import { soak } from './legs/soak.ts'
import { measureRedisCost } from './redis-cost.ts'
import { figure, type Results } from './results.ts'
import { runWorkloads, type Samples, type Stack } from './run.ts'
import { type VariantId, variants } from './variants.ts'
import { workloads } from './workloads.ts'

export interface Plan {
  rounds: number
  /** Duration of a turn in ms. Short turns expose all variants to the same load of the machine. */
  turnMs: number
  warmUp: number
  coldStarts: number
  redisRounds: number
  redisClients: number
  soakSeconds: number
  /** Ids of workloads and other parts. Defaults to all. */
  only?: string[] | undefined
  /** Runs only the parts and the variants of the verdict. */
  quick: boolean
}

export const thorough: Plan = {
  rounds: 15,
  turnMs: 300,
  warmUp: 20_000,
  coldStarts: 15,
  redisRounds: 9,
  redisClients: 3200,
  soakSeconds: 20,
  quick: false,
}

/** A run of less than 90 seconds, for a first impression. */
export const quick: Plan = {
  rounds: 3,
  turnMs: 200,
  warmUp: 1000,
  coldStarts: 3,
  redisRounds: 3,
  redisClients: 800,
  soakSeconds: 3,
  quick: true,
}

/** The variants of a quick run: each row of the verdict reads some of them. */
export const quickVariants: VariantId[] = [
  'nothing',
  'bare',
  'same-response',
  'shared-response',
  'ours',
  'ours-unbatched',
  'ours-limits',
  'ours-limits-unbatched',
  'ours-origin',
  'ours-gateway',
  'upstash-sliding',
  'upstash-sliding-cache',
  'hono',
  'cloudflare',
]

/** The other parts of a run, by id. */
type Parts = Omit<Results, 'workloads'>
export const verdictParts = ['redis', 'sizes', 'wholes', 'coldStarts'] as const
export const otherParts = [
  'exactness',
  'clients',
  'isolates',
  'soak',
  'shield',
] as const satisfies (keyof Parts)[]

export async function runAll(
  tools: Omit<Stack, 'takes'>,
  plan: Plan,
  log: (line: string) => void,
): Promise<Results> {
  const stack: Stack = { ...tools, takes: (id) => !plan.quick || quickVariants.includes(id) }
  const { rounds, turnMs, warmUp } = plan
  const options = { rounds, turnMs, warmUp, log }
  const measure: { [Id in keyof Parts]-?: () => Promise<Parts[Id]> } = {
    redis: () =>
      measureRedisCost(stack.server, {
        rounds: plan.redisRounds,
        clients: plan.redisClients,
        log: (line) => log(`redis: ${line}`),
      }),
    sizes: () => measureSizes(stack.workers),
    wholes: () => measureWholes(),
    coldStarts: () => measureColdStarts(stack, plan.coldStarts),
    exactness: () => measureExactness(stack),
    clients: () => measureClients(stack),
    isolates: () => measureIsolates(stack, 6),
    soak: () => soak(stack, plan.soakSeconds),
    shield: () => measureShield(stack),
  }
  const wanted = (id: string, isOfVerdict = false) =>
    plan.only?.includes(id) ?? (isOfVerdict || !plan.quick)
  const results: Results = { workloads: {} }
  const chosen = workloads.filter(({ id, verdict }) => wanted(id, verdict))
  for (const group of Map.groupBy(chosen, ({ quotas }) => quotas).values()) {
    log(group.map(({ id }) => id).join(', '))
    const samples = await runWorkloads(group, stack, options)
    for (const one of Object.values(samples)) expectWarmScripts(one)
    Object.assign(results.workloads, samples)
  }
  for (const id of [...verdictParts, ...otherParts]) {
    if (
      !wanted(
        id,
        verdictParts.some((one) => one === id),
      )
    )
      continue
    log(id)
    Object.assign(results, { [id]: await measure[id]() })
  }
  return results
}

/** Checks that the bridge knows the scripts of the peer. Otherwise each of its decisions would take two calls. */
function expectWarmScripts(samples: Samples) {
  for (const id of Object.keys(samples) as VariantId[]) {
    if (!/^upstash-[a-z]+$/.test(id)) continue
    const { high } = figure(samples, id, ({ calls }) => calls)!
    if (high > 1.02) throw new Error(`${variants[id].name} made ${high} HTTP calls per decision`)
  }
}
