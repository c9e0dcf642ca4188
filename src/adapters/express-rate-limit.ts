/** `sluice/express-rate-limit`: a store for express-rate-limit. */
import type { LimitState } from '../core/base/decision.ts'
import { doorByTerms } from '../limits/by-terms.ts'
import type { LimitTerms } from '../limits/terms.ts'
import { type AdapterOptions, stateOf, wholeMs } from './terms.ts'

export type { AdapterOptions } from './terms.ts'

export interface SluiceStoreOptions extends AdapterOptions {
  /** Keeps the counters of several limiters apart, which would count each other's requests. Defaults to `'express:'`. */
  prefix?: string
}

/** The hits of a client in the current window. */
export interface ClientInfo {
  totalHits: number
  resetTime: Date | undefined
}

/**
 * A store for express-rate-limit 6 and later. A window opens with the first request of a client. Each hit is one atomic call. Without Redis
 * the process counts; `decrement` and `resetKey` reject with a `StoreError`.
 * @example
 * app.use(rateLimit({ windowMs: 60_000, limit: 100, store: new SluiceStore() }))
 */
export class SluiceStore {
  readonly localKeys = false
  readonly prefix: string
  readonly #door: ReturnType<typeof doorByTerms>
  #terms: LimitTerms | undefined

  /** @throws {ConfigError} if an option is invalid */
  constructor({ prefix = 'express:', ...options }: SluiceStoreOptions = {}) {
    this.prefix = prefix
    this.#door = doorByTerms('express-rate-limit', options)
  }

  /** Called by express-rate-limit. */
  init({ windowMs }: { windowMs: number }): void {
    // The store only counts, and express-rate-limit compares. So the limit is out of reach.
    const limit = Number.MAX_SAFE_INTEGER
    this.#terms = { algorithm: 'fixed-window', limit, window: wholeMs(windowMs) }
  }

  async increment(key: string): Promise<ClientInfo> {
    return infoOf(stateOf(await this.#door.limit(this.#ready, this.prefix + key)))
  }

  /** Resolves to `undefined` for a client without hits. */
  async get(key: string): Promise<ClientInfo | undefined> {
    const info = infoOf(stateOf(await this.#door.peek(this.#ready, this.prefix + key)))
    return info.totalHits > 0 ? info : undefined
  }

  async decrement(key: string): Promise<void> {
    await this.#door.refund(this.#ready, this.prefix + key)
  }

  async resetKey(key: string): Promise<void> {
    await this.#door.reset(this.#ready, this.prefix + key)
  }

  get #ready(): LimitTerms {
    if (this.#terms) return this.#terms
    throw new TypeError('SluiceStore: pass it to rateLimit({ store }), which sets the window')
  }
}

function infoOf({ limit, remaining, resetAfterMs }: LimitState): ClientInfo {
  return { totalHits: limit - remaining, resetTime: new Date(Date.now() + resetAfterMs) }
}
