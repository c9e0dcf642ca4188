import type { BenchServer } from '../server.ts'
import { median } from '../statistics.ts'
import { type Contender, type Question, record } from './contender.ts'
import { exhausted, regular } from './past.ts'

/** One measure of one decision, over all rounds. */
export interface Figure {
  /** µs: the minimum and the median of the rounds. */
  min: number
  median: number
  /** Relative to a bare INCR of the same round, for each round. */
  ratios: number[]
}

/** The CPU time of Redis for one decision. */
export interface Cpu {
  /** The command alone: `usec` of INFO commandstats. */
  run: Figure
  /** The whole thread, with reading and replying; absent if the system does not report it. */
  thread?: Figure
}

export const OUTCOMES = ['admitted', 'refused'] as const
export type Outcome = (typeof OUTCOMES)[number]
export type CpuOfContender = Record<Outcome, Cpu>

/** µs for one decision, in one round. */
interface Sample {
  run: number
  thread: number | undefined
}

/** The commands that are sent once per round, and the number of decisions in them. */
interface Load {
  name: 'incr' | 'evalsha'
  commands: string[][]
  decisions: number
  samples: Sample[]
}

export interface CpuOptions {
  rounds: number
  log: (line: string) => void
  /** The number of clients of a contender, with one request each per round. With the default, few of their keys are in the CPU caches. */
  clients?: number
}

/** Measures all contenders in turn, with INCR between them, so that other load on the machine affects all equally. */
export async function measureCpu(
  server: BenchServer,
  contenders: Contender[],
  { rounds, log, clients = 3200 }: CpuOptions,
): Promise<{ bare: Cpu; contenders: CpuOfContender[] }> {
  const loads: Record<Outcome, Load>[] = []
  for (const contender of contenders) {
    const network = loads.length * 2
    loads.push({
      admitted: await prepare(server, contender, 'admitted', network, clients),
      refused: await prepare(server, contender, 'refused', network + 1, clients),
    })
    log(`prepared ${contender.by}, ${contender.algorithm}`)
  }
  const bare: Sample[] = []
  for (let round = 0; round <= rounds; round++) {
    const increments: Sample[] = []
    for (const [index, byOutcome] of loads.entries()) {
      for (const outcome of OUTCOMES) {
        increments.push(await measure(server, increment(`${index}:${outcome}`, clients)))
        const sample = await measure(server, byOutcome[outcome])
        if (round > 0) byOutcome[outcome].samples.push(sample) // round 0 warms up
      }
    }
    if (round > 0) bare.push(medianOf(increments))
    log(`round ${round} of ${rounds}`)
  }
  return {
    bare: summarize(bare, bare),
    contenders: loads.map(({ admitted, refused }) => ({
      admitted: summarize(admitted.samples, bare),
      refused: summarize(refused.samples, bare),
    })),
  }
}

function increment(name: string, decisions: number): Load {
  const commands = Array.from({ length: decisions }, (_, key) => ['INCR', `bare:${name}:${key}`])
  return { name: 'incr', commands, decisions, samples: [] }
}

/** Puts the clients of one load into the state in which they are measured. */
async function prepare(
  server: BenchServer,
  contender: Contender,
  outcome: Outcome,
  network: number,
  decisions: number,
): Promise<Load> {
  const commandsOf = async (question: Question) =>
    Promise.all((await record(contender, question)).map(server.toCommand))

  const past: string[][][] = []
  const commands: string[][] = []
  const hosts = decisions / contender.decisions
  const clients = Array.from({ length: hosts }, (_, n) => `10.${network}.${n >> 8}.${n & 255}`)
  for (const client of clients) {
    const questions = outcome === 'admitted' ? regular(client) : exhausted(client)
    for (const [turn, question] of questions.entries()) {
      past[turn] = [...(past[turn] ?? []), ...(await commandsOf(question))]
    }
    commands.push(...(await commandsOf({ client })))
  }
  // One turn after the other: the order matters to a client, and the connections do not keep it.
  for (const turn of past) await server.pour(turn)
  for (const client of [clients[0]!, clients.at(-1)!]) {
    if ((await contender.ask(server.call, { client })) !== (outcome === 'admitted')) {
      throw new Error(`${contender.by}, ${contender.algorithm}: ${client} was not ${outcome}`)
    }
  }
  return { name: 'evalsha', commands, decisions, samples: [] }
}

async function measure(server: BenchServer, { name, commands, decisions }: Load): Promise<Sample> {
  const usOf = async () => (await server.commandStats()).get(name)?.us ?? 0
  const run = await usOf()
  const thread = await server.cpu()
  await server.pour(commands)
  const threadAfter = await server.cpu()
  const runAfter = await usOf()
  return {
    run: (runAfter - run) / decisions,
    thread: thread === undefined ? undefined : (threadAfter! - thread) / decisions,
  }
}

const medianOf = (samples: Sample[]): Sample => ({
  run: median(samples.map(({ run }) => run)),
  thread: samples[0]!.thread === undefined ? undefined : median(samples.map((s) => s.thread!)),
})

function summarize(samples: Sample[], bare: Sample[]): Cpu {
  const figure = (read: (sample: Sample) => number): Figure => {
    const values = samples.map(read)
    const ratios = values.map((value, round) => value / read(bare[round]!))
    return { min: Math.min(...values), median: median(values), ratios }
  }
  const run = figure((sample) => sample.run)
  if (samples[0]!.thread === undefined) return { run }
  return { run, thread: figure((sample) => sample.thread!) }
}
