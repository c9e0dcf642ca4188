import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { FloodOrder, FloodOutcome, Order, Outcome } from './load/order.ts'

const FILE = fileURLToPath(new URL('./load/process.ts', import.meta.url))

/** The load generator, in a separate process. Runs one order at a time. */
export interface Load {
  run(order: Order): Promise<Outcome>
  flood(order: FloodOrder): Promise<FloodOutcome>
  stop(): void
}

export function startLoad(): Load {
  const child = fork(FILE, { serialization: 'advanced' })
  let settle: PromiseWithResolvers<unknown> | undefined
  child.on('message', (outcome) => settle?.resolve(outcome))
  child.on('exit', () => settle?.reject(new Error('The load generator ended unexpectedly.')))
  const run = <Result>(order: Order | FloodOrder) => {
    settle = Promise.withResolvers()
    child.send(order)
    return settle.promise as Promise<Result>
  }
  return {
    run: (order) => run<Outcome>(order),
    flood: (order) => run<FloodOutcome>(order),
    stop: () => void child.kill(),
  }
}
