import { isWithin, systemClock } from '../../core/base/clock.ts'
import type { Decision } from '../../core/base/decision.ts'
import type { Log } from '../../core/base/log.ts'
import { inTime } from '../../core/base/sleep.ts'
import type { Feature } from '../../core/feature.ts'
import type { Shield } from './fields.ts'

/** Cloudflare's rate-limit binding. Each location counts by itself: https://developers.cloudflare.com/workers/runtime-apis/bindings/rate-limit/ */
interface RateLimitBinding {
  limit(options: { key: string }): Promise<{ success: boolean }>
}

/** How long a request waits for the binding, ms. A local call is normally far faster. */
const TIMEOUT_MS = 100
/** How long the binding is not called after a failure, ms, so that requests do not wait for it. */
const PAUSE_MS = 1_000

/** Returns the refusal for a subject, if any. Without an answer in time, the event is logged and the request continues without it. */
export function createShield(
  { binding: name, periodMs }: Shield,
  log: Log,
  clock: () => number = systemClock,
): (env: object, subject: string) => Promise<Decision | undefined> {
  let failedAt = Number.NEGATIVE_INFINITY

  return async (env, subject) => {
    const now = clock()
    if (isWithin(now, failedAt, failedAt + PAUSE_MS)) return undefined
    const binding = (env as Record<string, RateLimitBinding | undefined>)[name]
    let code = typeof binding?.limit === 'function' ? 'failed' : 'missing'
    try {
      const limiting = binding!.limit({ key: `sluice:${subject}` })
      const { success } = await inTime(limiting, TIMEOUT_MS, () => {
        code = 'timeout'
        return new Error(code)
      })
      // The binding reports no wait. One period is the upper bound.
      return success === false
        ? { allowed: false, reason: 'shielded', retryAfterMs: periodMs, limits: [] }
        : undefined
    } catch {
      failedAt = clock()
      log('shield', code, `rate-limit binding ${name} is unavailable; continuing without it`)
      return undefined
    }
  }
}

export const compile: Feature['compile'] = ({ config, log }) =>
  config.shield ? { askShield: createShield(config.shield, log) } : {}
