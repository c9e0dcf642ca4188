/** Several isolates with leases on one real Redis, by a clock that a test moves, and calls that arrive when it says. */
import { StoreError } from '../../src/base/errors.ts'
import { type LeasesOptions, withLeases } from '../../src/store/leases/leases.ts'
import type { Limit, Store, StoreReply, StoreRequest } from '../../src/store/store.ts'
import { decode, encode } from '../../src/store/upstash/script.ts'
import type { Server } from './server.ts'

/** A request that passed: when, and by whose word. */
export interface Passed {
  row: Limit
  /** ms since the epoch, by Redis' clock. */
  at: number
  byCall: boolean
}

/** A call on its way. */
export interface OnItsWay {
  requests: StoreRequest[]
  /** Redis decides. */
  arrive(): Promise<void>
  /** The answer comes, if there is one. */
  answer(): void
  fail(): void
}

export const settled = () => new Promise((resolve) => setImmediate(resolve))

export class World {
  now = 1_789_000_000_000
  /** Calls that have not been answered. */
  readonly calls: OnItsWay[] = []
  /** Each row of each request that passed. */
  readonly passed: Passed[] = []
  sent = 0
  readonly isolates: Store[]
  /** How far the clock of each isolate is ahead of Redis', ms. */
  readonly skews: number[]
  readonly #server: Server
  /** When Redis decided the limits that were asked for themselves. */
  readonly #decided = new Map<Limit, number>()

  constructor(server: Server, skews: number[], options: LeasesOptions = {}) {
    this.#server = server
    this.skews = [...skews]
    this.isolates = skews.map((_, isolate) =>
      withLeases(this.#store(), { ...options, clock: () => this.now + this.skews[isolate]! }),
    )
  }

  /** Asks Redis itself, at once. */
  async evaluate(requests: StoreRequest[]): Promise<StoreReply> {
    const { keys, args } = encode(requests, this.now)
    return decode(await this.#server.evaluate(keys, args), requests)!
  }

  #store(): Store {
    const decide = (requests: StoreRequest[]) => {
      const { promise, resolve, reject } = Promise.withResolvers<StoreReply>()
      let reply: StoreReply | undefined
      const done = () => void this.calls.splice(this.calls.indexOf(call), 1)
      const call: OnItsWay = {
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

  /** What a request is told, or the code of an error. */
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

  /** Lets everything on its way arrive. */
  async drain(): Promise<void> {
    await settled()
    while (this.calls.length > 0) {
      const [call] = this.calls
      await call!.arrive()
      call!.answer()
      await settled()
    }
  }

  /** Asks, and nothing else is under way. */
  async alone(isolate: number, requests: StoreRequest[]): Promise<StoreReply> {
    const asked = this.ask(isolate, requests)
    await this.drain()
    return (await asked) as StoreReply
  }

  /** Units that passed. */
  units(is: (passed: Passed) => boolean = () => true): number {
    return this.passed.filter(is).reduce((sum, { row }) => sum + row.cost, 0)
  }
}
