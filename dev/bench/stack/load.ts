import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Order, Outcome } from './load/order.ts'

const FILE = fileURLToPath(new URL('./load/process.ts', import.meta.url))

/** Makes requests. One order at a time. */
export interface Load {
  run(order: Order): Promise<Outcome>
  stop(): void
}

export function startLoad(): Load {
  const child = fork(FILE, { serialization: 'advanced' })
  let settle: PromiseWithResolvers<Outcome> | undefined
  child.on('message', (outcome: Outcome) => settle?.resolve(outcome))
  child.on('exit', () => settle?.reject(new Error('the load ended')))
  return {
    run(order) {
      settle = Promise.withResolvers()
      child.send(order)
      return settle.promise
    },
    stop: () => void child.kill(),
  }
}
