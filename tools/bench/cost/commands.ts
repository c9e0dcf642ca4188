import type { BenchServer } from '../server.ts'
import type { Contender, Question } from './contender.ts'
import { exhausted, regular } from './past.ts'

/** The commands that Upstash bills for one call: each EVALSHA and each command inside it. */
export interface Commands {
  /** The first request of a client. */
  first: number
  admitted: number
  refused: number
  peek: number
}

export async function countCommands(server: BenchServer, contender: Contender): Promise<Commands> {
  async function billed(client: string, past: Question[], question: Question, admitted = true) {
    await contender.ask(server.call, { client: '198.51.100.99', peek: true }) // loads the script
    for (const earlier of past) await contender.ask(server.call, earlier)
    const before = await total(server)
    const answer = await contender.ask(server.call, question)
    const after = await total(server)
    if (!question.peek && answer !== admitted) {
      throw new Error(
        `${contender.by}, ${contender.algorithm}: ${client} was ${admitted ? 'refused' : 'admitted'}`,
      )
    }
    return after - before
  }
  const [a, b, c, d] = [1, 2, 3, 4].map((host) => `198.51.100.${host}`) as Clients
  return {
    first: await billed(a, [], { client: a }),
    admitted: await billed(b, regular(b), { client: b }),
    refused: await billed(c, exhausted(c), { client: c }, false),
    peek: await billed(d, regular(d), { client: d, peek: true }),
  }
}

type Clients = [string, string, string, string]

async function total(server: BenchServer): Promise<number> {
  let sum = 0
  for (const [name, { calls }] of await server.commandStats()) {
    if (!/^(info|script\|)/.test(name)) sum += calls // sent by this benchmark only
  }
  return sum
}
