/** `sluice/nest`: a storage for the throttler of Nest. */
import { fields as bans } from '../features/bans/fields.ts'
import { penalties } from '../features/bans/stages.ts'
import { logs } from '../features/sliding-log/stages.ts'
import { doorByTerms } from '../limits/by-terms.ts'
import { type AdapterOptions, inSeconds, stateOf, termsOf } from './terms.ts'

export type { AdapterOptions } from './terms.ts'

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
  readonly #door: ReturnType<typeof doorByTerms>

  /** @throws {ConfigError} if an option is invalid */
  constructor(options: AdapterOptions = {}) {
    const fields = [{ name: 'bans', fields: bans }]
    this.#door = doorByTerms('nest', options, fields, [...logs, penalties])
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
    const terms = termsOf(limit, ttl, blockDuration)
    const { penalty, window, ...others } = terms
    const own = `${throttlerName}:${key}`
    const state = stateOf(await this.#door.limit(terms, own))
    const { allowed, retryAfterMs, remaining, resetAfterMs, bannedForMs } = state
    // After a block the hits begin at 0. During it no hit is counted, so the reset loses none.
    if (penalty && bannedForMs === penalty.ban && penalty.ban < window) {
      await this.#door.reset({ ...others, window }, own).catch(() => {})
    }
    return {
      totalHits: allowed ? state.limit - remaining : state.limit + 1,
      timeToExpire: inSeconds(resetAfterMs),
      isBlocked: !allowed,
      timeToBlockExpire: allowed ? 0 : inSeconds(bannedForMs ?? retryAfterMs ?? window),
    }
  }
}
