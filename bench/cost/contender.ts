import type { Call } from '../server.ts'

/** One question to a limiter. */
export interface Question {
  /** The client's address. */
  client: string
  /** Units; 1 by default. */
  units?: number
  /** Ask what is left, take nothing. */
  peek?: boolean
  /** ms since the epoch; the limiter's own clock by default. */
  at?: number
}

/** A limiter whose scripts are measured. */
export interface Contender {
  by: string
  algorithm: string
  /** How many decisions one question is. */
  decisions: number
  /** Asks by way of `send`. @returns whether all was admitted; without meaning for a peek */
  ask(send: (call: Call) => Promise<unknown>, question: Question): Promise<boolean>
}

/** All contenders enforce the same: 100 a day, so that nothing comes back while they are measured. */
export const LIMIT = 100
export const WINDOW_MS = 86_400_000

/** The calls that a question makes, without asking it. */
export async function record(contender: Contender, question: Question): Promise<Call[]> {
  const calls: Call[] = []
  await contender.ask(async (call) => {
    calls.push(call)
    return [1, 1, 1] // any reply: what is made of it does not matter
  }, question)
  return calls
}
