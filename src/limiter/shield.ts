import type { Decision } from '../base/decision.ts'
import type { Log } from '../base/log.ts'
import type { Shield } from '../config/schema/shield.ts'

/** Cloudflare's rate limit, counted at each of its locations: https://developers.cloudflare.com/workers/runtime-apis/bindings/rate-limit/ */
interface RateLimit {
  limit(options: { key: string }): Promise<{ success: boolean }>
}

/** Far longer than what is local takes, ms. */
const PATIENCE_MS = 100
/** How long one that failed is left alone, ms: who does not ask does not wait. */
const REST_MS = 1_000

/**
 * A rate limit in front of the store, for floods: free, near and inexact. Where it is not there, fails or hangs the log says so, and
 * requests go on without it.
 * @returns what tells its refusal of a subject, `undefined` where it has none
 */
export function createShield(
  { binding: name, periodMs }: Shield,
  log: Log,
  clock: () => number = Date.now,
): (env: object, subject: string) => Promise<Decision | undefined> {
  let failedAt = Number.NEGATIVE_INFINITY

  return async (env, subject) => {
    const now = clock()
    if (failedAt <= now && now < failedAt + REST_MS) return undefined // a clock that was set back ends it
    const binding = (env as Record<string, Partial<RateLimit> | undefined>)[name]
    let late: ReturnType<typeof setTimeout> | undefined
    try {
      if (typeof binding?.limit !== 'function') throw new Missing()
      const { success } = await Promise.race([
        binding.limit({ key: `sluice:${subject}` }),
        new Promise<never>((_, reject) => {
          late = setTimeout(() => reject(new Late()), PATIENCE_MS)
        }),
      ])
      // It says neither how long nor how much: a period is the most.
      return success === false
        ? { allowed: false, reason: 'shielded', retryAfterMs: periodMs, limits: [] }
        : undefined
    } catch (error) {
      failedAt = clock()
      const code =
        error instanceof Missing ? 'missing' : error instanceof Late ? 'timeout' : 'failed'
      log('shield', code, `the binding ${name} is of no use: requests go on without it`)
      return undefined
    } finally {
      if (late !== undefined) clearTimeout(late)
    }
  }
}

class Missing extends Error {}
class Late extends Error {}
