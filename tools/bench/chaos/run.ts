import { setTimeout as sleep } from 'node:timers/promises'
import { startClientStack } from './client-stack.ts'
import { type Figures, figuresOf, recoveredAt, type Span } from './figures.ts'
import { startLoad } from './load.ts'
import { objectPhases, startObjectsStack } from './objects-stack.ts'
import { type Phase, phases } from './phases.ts'
import { config } from './policies.ts'
import { startChaosStack } from './stack.ts'
import { watchStall } from './stall.ts'

export const STORES = ['redis', 'client', 'durable-objects'] as const
export type ChaosStore = (typeof STORES)[number]

export interface ChaosOptions {
  /** Duration of all rounds together, at least 20 s. A slow recovery makes it longer. */
  seconds: number
  /** What counts: Redis behind the Worker, Redis by the client of a Node server, or Durable Objects. Defaults to `redis`. */
  store?: ChaosStore
  /** Requests per second. Defaults to 250. */
  rate?: number
  /** Receives a line at the start of each phase. */
  log?: (line: string) => void
  /** Ends the run early and stops everything. */
  signal?: AbortSignal
}

export interface ChaosReport {
  phases: Figures[]
  /** Requests sent per second. */
  rate: number
  /** The number of scripts in Redis before the first fault: one for each set of policies, besides the general one. */
  scripts?: number | undefined
  /** The Worker's log. */
  logs: string[]
}

/** Approximate duration of a round of all phases, in seconds, if there is time for several rounds. */
const ROUND = 36
/** Minimum time for a recovery, and maximum wait for one, in ms. */
const MIN_RECOVERY_WAIT_MS = 2400
const MAX_RECOVERY_WAIT_MS = 10_000

/** Runs a steady load through the whole stack while it injects faults into the store. Redis needs the built Worker (`buildStack`). */
export function runChaos({ store, ...options }: ChaosOptions): Promise<ChaosReport> {
  if (store === 'durable-objects') return runPhases(startObjectsStack, objectPhases, options)
  if (store === 'client') return runPhases(startClientStack, phases, options)
  return runPhases(startChaosStack, phases, options)
}

/** What is under load. */
interface Target {
  worker: { url: string; logs: string[] }
  /** The number of scripts in the store, if it has scripts. */
  scripts?: () => Promise<number>
  stop(): Promise<void>
}

async function runPhases<Stack extends Target>(
  start: () => Promise<Stack>,
  phases: Phase<Stack>[],
  {
    seconds,
    rate = 250,
    log = () => {},
    signal = new AbortController().signal,
  }: Omit<ChaosOptions, 'store'>,
): Promise<ChaosReport> {
  const rounds = Math.max(1, Math.round(seconds / ROUND))
  const phaseMs = (seconds * 1000) / (rounds * phases.length)
  const stack = await start()
  try {
    await warm(stack.worker.url)
    const stall = watchStall(`${stack.worker.url}/free`)
    const load = startLoad(stack.worker.url, rate)
    try {
      const spans: Span[] = []
      const start = performance.now()
      let scripts: number | undefined
      for (let round = 1; round <= rounds; round++) {
        for (const phase of phases) {
          log(`${Math.round((performance.now() - start) / 1000)} s: ${phase.name}`)
          spans.push(await run(phase, stack, phaseMs, load.samples, signal))
          scripts ??= await stack.scripts?.()
        }
      }
      const took = performance.now() - start
      await load.stop()
      const figures: Figures[] = []
      for (const { name } of phases) {
        const own = spans.filter((span) => span.name === name)
        figures.push(await figuresOf(name, own, load.samples, stall))
      }
      const { logs } = stack.worker
      return { phases: figures, rate: (load.samples.length / took) * 1000, scripts, logs }
    } finally {
      await load.stop()
      await stall.stop()
    }
  } finally {
    await stack.stop()
  }
}

/**
 * Sends requests before the measurement, so that neither the cold start of the isolate nor the first use of a script is measured: one to the
 * path of each policy, and 50 in all at least.
 */
async function warm(url: string): Promise<void> {
  const paths = config.policies.flatMap(({ match }) => match!.path as string)
  while (paths.length < 50) paths.push('/allow/many')
  for (const path of paths) {
    await (await fetch(url + path, { headers: { 'x-key': 'warm' } })).arrayBuffer()
  }
}

async function run<Stack>(
  { name, hurt }: Phase<Stack>,
  stack: Stack,
  ms: number,
  samples: Parameters<typeof recoveredAt>[0],
  signal: AbortSignal,
): Promise<Span> {
  const start = performance.now()
  let lost: number | undefined
  let healed: number | undefined
  if (hurt) {
    const onLost = () => {
      lost = performance.now()
    }
    await hurt(stack, Math.max(ms - MIN_RECOVERY_WAIT_MS, ms * 0.3), signal, onLost)
    healed = performance.now()
  }
  const calm = Math.max(start + ms - performance.now(), hurt ? MIN_RECOVERY_WAIT_MS : 0)
  await sleep(calm, undefined, { signal })
  if (healed !== undefined) {
    while (performance.now() < healed + MAX_RECOVERY_WAIT_MS && !recoveredAt(samples, healed)) {
      await sleep(100, undefined, { signal })
    }
  }
  return { name, start, healed, end: performance.now(), lost }
}
