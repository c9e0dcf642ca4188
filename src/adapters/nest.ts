/** `sluice/nest`: a storage for the throttler of Nest. */

import { operators } from '../core/connection/upstash/script-text.ts'
import { bans } from '../features/bans/index.ts'
import { slidingLog } from '../features/sliding-log/index.ts'
import { type AdapterOptions, type CounterTerms, createCounter, inSeconds } from './counter.ts'

export type { AdapterOptions } from './counter.ts'

/** The state of a key after a hit. The times are in seconds. */
export interface ThrottlerRecord {
  totalHits: number
  timeToExpire: number
  isBlocked: boolean
  timeToBlockExpire: number
}

/** The largest limit of the exact algorithm. */
const MOST_EXACT = 10_000

/**
 * A storage for `@nestjs/throttler` 6: at most `limit` hits pass in any `ttl`, and the next hit blocks the key for `blockDuration`. Each hit
 * is one atomic call; the hit that starts a block shorter than `ttl` needs a second one. Without Redis the process counts.
 * @example
 * ThrottlerModule.forRoot({ throttlers: [{ ttl: 60_000, limit: 100 }], storage: new SluiceThrottlerStorage() })
 */
export class SluiceThrottlerStorage {
  readonly #counter: ReturnType<typeof createCounter>

  /** @throws {ConfigError} if an option is invalid */
  constructor(options: AdapterOptions = {}) {
    this.#counter = createCounter(options, 'nest', {
      byDefault: [bans(), slidingLog()],
      lua: [{ text: operators }],
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
    if (limit < 1) {
      const wait = inSeconds(Math.max(ttl, blockDuration))
      return { totalHits: 1, timeToExpire: wait, isBlocked: true, timeToBlockExpire: wait }
    }
    const terms: CounterTerms = {
      algorithm: limit > MOST_EXACT ? 'sliding-window' : 'sliding-log',
      limit,
      window: ttl,
    }
    const penalty = { after: 1, within: blockDuration, ban: blockDuration, max: blockDuration }
    const own = `${throttlerName}:${key}`
    const state = await this.#counter.take(blockDuration > 0 ? { ...terms, penalty } : terms, own)
    const { allowed, bannedForMs, retryAfterMs, remaining, resetAfterMs } = state
    // After a block the hits begin at 0. During it no hit is counted, so the reset loses none.
    if (bannedForMs === blockDuration && blockDuration < ttl) {
      await this.#counter.operate('reset', terms, own).catch(() => {})
    }
    return {
      totalHits: allowed ? limit - remaining : limit + 1,
      timeToExpire: inSeconds(resetAfterMs),
      isBlocked: !allowed,
      timeToBlockExpire: allowed ? 0 : inSeconds(bannedForMs ?? retryAfterMs ?? ttl),
    }
  }
}
