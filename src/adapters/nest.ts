/** `sluice/nest`: a storage for the throttler of Nest. */

import { operations } from '../core/decide/operate.ts'
import { declaration as bans } from '../features/bans/declaration.ts'
import { penalties } from '../features/bans/part.ts'
import { logs } from '../features/sliding-log/part.ts'
import { type AdapterOptions, createCounter, inSeconds, termsOf } from './counter.ts'

export type { AdapterOptions } from './counter.ts'

/** The state of a key after a hit. The times are in seconds. */
export interface ThrottlerRecord {
  totalHits: number
  timeToExpire: number
  isBlocked: boolean
  timeToBlockExpire: number
}

/**
 * A storage for `@nestjs/throttler` 6: at most `limit` hits pass in any `ttl`, and the next hit blocks the key for `blockDuration`. With a
 * limit above 10,000 up to twice as many may pass around the edge of a window. Each hit is one atomic call; the hit that starts a block
 * shorter than `ttl` needs a second one. Without Redis the process counts.
 * @example
 * ThrottlerModule.forRoot({ throttlers: [{ ttl: 60_000, limit: 100 }], storage: new SluiceThrottlerStorage() })
 */
export class SluiceThrottlerStorage {
  readonly #counter: ReturnType<typeof createCounter>

  /** @throws {ConfigError} if an option is invalid */
  constructor(options: AdapterOptions = {}) {
    this.#counter = createCounter(options, 'nest', {
      fields: [bans],
      lua: [...logs, penalties, operations],
    })
  }

  /**
   * Called by the guard.
   * @param ttl in ms
   * @param blockDuration in ms; 0 blocks no longer than the hits count
   */
  async increment(
    key: string,
    ttl: number,
    limit: number,
    blockDuration: number,
    throttlerName: string,
  ): Promise<ThrottlerRecord> {
    const { penalty, ...terms } = termsOf({ limit, windowMs: ttl, blockMs: blockDuration })
    const own = `${throttlerName}:${key}`
    const state = await this.#counter.take(penalty ? { ...terms, penalty } : terms, own)
    const { allowed, bannedForMs, retryAfterMs, remaining, resetAfterMs } = state
    // After a block the hits begin at 0. During it no hit is counted, so the reset loses none.
    if (penalty && bannedForMs === penalty.ban && penalty.ban < terms.window) {
      await this.#counter.operate('reset', terms, own).catch(() => {})
    }
    return {
      totalHits: allowed ? state.limit - remaining : state.limit + 1,
      timeToExpire: inSeconds(resetAfterMs),
      isBlocked: !allowed,
      timeToBlockExpire: allowed ? 0 : inSeconds(bannedForMs ?? retryAfterMs ?? terms.window),
    }
  }
}
