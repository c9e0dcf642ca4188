/** `sluice/better-auth`: counts the rate limits of Better Auth. */
import { logs } from '../features/sliding-log/stages.ts'
import { doorByTerms } from '../limits/by-terms.ts'
import { type AdapterOptions, inSeconds, termsOf } from './terms.ts'

export type { AdapterOptions } from './terms.ts'

/** The storage that `rateLimit.customStorage` of Better Auth expects. */
export interface BetterAuthStorage {
  /**
   * Counts a request, in one atomic call. Without Redis the isolate counts.
   * @param rule the window in seconds, and the requests that it admits
   * @returns whether the request may pass; otherwise the seconds to wait
   */
  consume: (
    key: string,
    rule: { window: number; max: number },
  ) => Promise<{ allowed: boolean; retryAfter: number | null }>
}

/**
 * Creates the rate limit storage of Better Auth 1.7 and later: at most `max` requests pass in any `window`, however many instances of the
 * app there are. With a `max` above 10,000 up to twice as many may pass around the edge of a window.
 * @throws {ConfigError} immediately, if an option is invalid
 * @example
 * export const auth = betterAuth({ rateLimit: { enabled: true, customStorage: sluiceStorage() } })
 */
export function sluiceStorage(options: AdapterOptions = {}): BetterAuthStorage {
  const door = doorByTerms('better-auth', options, [], logs)
  return {
    async consume(key, { window, max }) {
      const terms = termsOf(max, window * 1000)
      const { allowed, retryAfterMs } = await door.limit(terms, key)
      return { allowed, retryAfter: allowed ? null : inSeconds(retryAfterMs ?? terms.window) }
    },
  }
}
