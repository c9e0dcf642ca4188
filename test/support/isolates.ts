/** Simulates several isolates with leases on one real store. The test moves the clock and delivers each call. */
import { StoreError } from '../../src/core/base/errors.ts'
import type { Limit, Store, StoreReply, StoreRequest } from '../../src/core/connection/store.ts'
import { withLeases } from '../../src/features/leases/leases.ts'
import type { ModelRequest } from '../model/model.ts'
import type { Server } from './server.ts'

/** A limit of a request that was admitted. */
export interface Passed {
  row: Limit
  /** The time of the decision in ms since the epoch, by Redis' clock. */
  at: number
  /** True if Redis decided, false if a lease did. */
  byCall: boolean
}

/** A call in flight. */
export interface PendingCall {
  requests: StoreRequest[]
  /** Delivers the call to Redis, which decides. */
  arrive(): Promise<void>
  /** Delivers the reply, if Redis has decided. */
  answer(): void
  /** Ends the call with a timeout. */
  fail(): void
}

export const settled = () => new Promise((resolve) => setImmediate(resolve))

export class World {
  now = 1_789_000_000_000
  /** Calls without a reply. */
  readonly calls: PendingCall[] = []
  /** Each limit of each admitted request. */
  readonly passed: Passed[] = []
  sent = 0
  readonly isolates: Store[]
  /** How far the clock of each isolate is ahead of Redis' clock, in ms. */
  readonly skews: number[]
  readonly #server: Server
  /** The time at which Redis decided a limit. A limit that a lease decides is not in it. */
  readonly #decided = new Map<Limit, number>()

  constructor(server: Server, skews: number[], options: Parameters<typeof withLeases>[1] = {}) {
    this.#server = server
    this.skews = [...skews]
    this.isolates = skews.map((_, isolate) =>
      withLeases(this.#store(), { ...options, clock: () => this.now + this.skews[isolate]! }),
    )
  }

  /** Asks the store directly, without an isolate. */
  async evaluate(requests: StoreRequest[]): Promise<StoreReply> {
    return this.#server.decide(requests as ModelRequest[], this.now)
  }

  #store(): Store {
    const decide = (requests: StoreRequest[]) => {
      const { promise, resolve, reject } = Promise.withResolvers<StoreReply>()
      let reply: StoreReply | undefined
      const done = () => void this.calls.splice(this.calls.indexOf(call), 1)
      const call: PendingCall = {
        requests,
        arrive: async () => {
          if (reply) return
          reply = await this.evaluate(requests)
          for (const { limits } of requests)
            for (const row of limits) this.#decided.set(row, this.now)
        },
        answer: () => {
          if (!reply) return
          done()
          resolve(reply)
        },
        fail: () => {
          done()
          reject(new StoreError('timeout'))
        },
      }
      this.sent += 1
      this.calls.push(call)
      return promise
    }
    return {
      decide,
      decideEach: (lists) => Promise.all(lists.map((list) => decide(list))),
    }
  }

  /** The reply to a list of requests, or the code of the error. */
  async ask(isolate: number, requests: StoreRequest[]): Promise<StoreReply | string> {
    try {
      const reply = await this.isolates[isolate]!.decide(requests, { deadlineMs: 600_000 })
      let passes = true
      requests.forEach(({ mode, limits }, index) => {
        const fits = reply.states[index]!.every(({ allowed }) => allowed)
        if (mode === 'take') passes = fits
        if (!passes || !fits || (mode !== 'take' && mode !== 'follow')) return
        for (const row of limits) {
          const at = this.#decided.get(row)
          this.passed.push({ row, at: at ?? this.now, byCall: at !== undefined })
        }
      })
      return reply
    } catch (error) {
      return (error as StoreError).code
    }
  }

  /** Delivers all calls and their replies. */
  async drain(): Promise<void> {
    await settled()
    while (this.calls.length > 0) {
      const [call] = this.calls
      await call!.arrive()
      call!.answer()
      await settled()
    }
  }

  /** Sends requests, and delivers all calls until the reply is there. */
  async alone(isolate: number, requests: StoreRequest[]): Promise<StoreReply> {
    const reply = this.ask(isolate, requests)
    await this.drain()
    return (await reply) as StoreReply
  }

  /** The number of admitted units. */
  units(is: (passed: Passed) => boolean = () => true): number {
    return this.passed.filter(is).reduce((sum, { row }) => sum + row.cost, 0)
  }
}
