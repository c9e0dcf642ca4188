import type { Call } from '../server.ts'

/** One call of a limiter. */
export interface Question {
  /** The client's address. */
  client: string
  /** The cost in units. Defaults to 1. */
  units?: number
  /** Peek instead of taking units. */
  peek?: boolean
  /** Time in ms since the epoch. Defaults to the clock of the limiter. */
  at?: number
}

/** A limiter whose scripts are measured. */
export interface Contender {
  by: string
  algorithm: string
  /** Number of decisions in one call. */
  decisions: number
  /** Calls the limiter, which uses `send`. @returns true if all is admitted; without meaning for a peek */
  ask(send: (call: Call) => Promise<unknown>, question: Question): Promise<boolean>
}

/** All contenders have the same limit: 100 per day, so that nothing is refilled during the measurement. */
export const LIMIT = 100
export const WINDOW_MS = 86_400_000

/** Records the script calls of a question without running them. */
export async function record(contender: Contender, question: Question): Promise<Call[]> {
  const calls: Call[] = []
  await contender.ask(async (call) => {
    calls.push(call)
    return [1, 1, 1] // the result does not matter
  }, question)
  return calls
}
