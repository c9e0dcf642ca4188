import type { Bindings } from './bindings.ts'
import type { LimiterParts } from './limiter.ts'
import type { Log } from './log.ts'
import type { Config } from './policy.ts'
import { createProofs } from './proofs.ts'
import { withBreaker } from './store/breaker.ts'
import { createLocalStore } from './store/local.ts'
import { withSharing } from './store/sharing.ts'
import { createUpstashStore } from './store/upstash.ts'
import { hashedSubjects, plainSubjects } from './subject.ts'

/** The limiter's way outside, made once for each set of credentials, which an isolate does not change. */
export function limiterParts(
  { clock, proofs, sharing, subjects }: Config,
  log: Log,
): (env: Bindings) => LimiterParts {
  const local = createLocalStore()
  const onStoreError: LimiterParts['onStoreError'] = ({ code, message }) => {
    if (code !== 'circuit-open') log('store-error', code, message) // which has its own line
  }
  let made: { by: string; parts: LimiterParts } | undefined

  return ({ UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token, SLUICE_SECRET }) => {
    const secret = SLUICE_SECRET || token || 'sluice'
    const by = JSON.stringify([url, token, secret])
    if (made?.by !== by) {
      const upstash = createUpstashStore({
        url,
        token,
        clock,
        onReload: () => log('script-reloaded', '', 'the database had lost the script'),
      })
      const guarded = withBreaker(upstash, {
        onOpen: (code) => log('breaker-opened', code, 'the database is not asked for a while'),
        onClose: (openMs) =>
          log('breaker-closed', '', `the database answers again after ${openMs} ms`),
      })
      const store = sharing ? withSharing(guarded) : guarded
      const nameSubject = subjects === 'plain' ? plainSubjects(secret) : hashedSubjects(secret)
      const parts = { store, local, nameSubject, onStoreError }
      made = { by, parts: proofs ? { ...parts, proofs: createProofs() } : parts }
    }
    return made.parts
  }
}
