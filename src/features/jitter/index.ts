import type { Decision } from '../../core/base/decision.ts'
import { ConfigError, show } from '../../core/base/errors.ts'
import type { Feature } from '../../core/feature.ts'

/**
 * Makes the waits in refusals longer by a random part, up to `share`, so that clients that were refused at the same time do not come back
 * at the same time. No wait is shorter than the exact one. All waits of one refusal are longer by the same part.
 * @param share the largest part, in whole percent: `'1%'` to `'100%'`
 * @throws {ConfigError} immediately, for another share
 * @example
 * rateLimiter({ policies: [{ name: 'per-ip', limit: 100, window: '1m' }], use: [jitter('10%')] })
 */
export function jitter(share: `${number}%`): Feature {
  const percent = /^([1-9]\d?|100)%$/.exec(share)?.[1]
  if (percent === undefined) {
    const expected = 'a part of the wait like "10%", from "1%" to "100%"'
    throw new ConfigError([{ path: 'jitter', expected, got: show(share) }])
  }
  return {
    name: 'jitter',
    compile: () => ({
      told: (refused) => longer(refused, 1 + Math.random() * (Number(percent) / 100)),
    }),
  }
}

/** The same factor for all waits, so that their order and the policy that binds stay the same. */
function longer(decision: Decision, factor: number): Decision {
  const by = <Wait extends number | null | undefined>(ms: Wait) =>
    (ms ? Math.ceil(ms * factor) : ms) as Wait
  return {
    ...decision,
    retryAfterMs: by(decision.retryAfterMs),
    limits: decision.limits.map((limit) => ({
      ...limit,
      retryAfterMs: by(limit.retryAfterMs),
      nextAfterMs: by(limit.nextAfterMs),
      resetAfterMs: by(limit.resetAfterMs),
      ...(limit.bannedForMs && { bannedForMs: by(limit.bannedForMs) }),
    })),
  }
}
