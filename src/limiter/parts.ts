import { type Bindings, credentialsOf } from '../base/bindings.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/parse.ts'
import { hashedSubjects, plainSubjects } from '../match/subject.ts'
import { withBatching } from '../store/batching.ts'
import { withBreaker } from '../store/breaker.ts'
import { withDeadline } from '../store/deadline.ts'
import { withLeases } from '../store/leases/leases.ts'
import { createLocalStore } from '../store/local/local.ts'
import { createShards } from '../store/shards/shards.ts'
import type { Store } from '../store/store.ts'
import { createUpstashStore } from '../store/upstash/upstash.ts'
import type { LimiterParts } from './decide.ts'
import { createDenialCache } from './denial-cache.ts'
import { createShield } from './shield.ts'

/** For the leases of all databases together: an isolate has some 128 MB. */
const MAX_LEASE_BYTES = 4 * 1024 * 1024

/** The limiter's way outside, and each database by itself. */
export interface Parts extends LimiterParts {
  databases: Database[]
}

interface Database {
  /** Only where there are several databases. */
  name: string | undefined
  store: Store
  /** Whether the breaker refuses calls now. */
  isOpen: () => boolean
}

/** Made once for each set of credentials, which an isolate does not change. */
export function limiterParts(
  { clock, namespace, batching, denialCache: hasDenialCache, hashKeys, shield, shards }: Config,
  log: Log,
): (env: Bindings) => Parts {
  const names = shards ?? [undefined]
  const local = createLocalStore()
  const onStoreError: LimiterParts['onStoreError'] = ({ code, message, store }) => {
    if (code !== 'circuit-open') log('store-error', code, message, store) // which has its own line
  }

  function databaseOf(env: Bindings, name: string | undefined): Database {
    const upstash = createUpstashStore({
      ...credentialsOf(env, name),
      clock,
      namespace,
      onReload: () => log('script-reloaded', '', 'the database had lost the script', name),
    })
    const guarded = withBreaker(upstash, {
      onOpen: (code) => log('breaker-opened', code, 'the database is not asked for a while', name),
      onClose: (openMs) =>
        log('breaker-closed', '', `the database answers again after ${openMs} ms`, name),
    })
    const batched = batching ? withBatching(guarded) : guarded
    const maxBytes = MAX_LEASE_BYTES / names.length
    const store = withDeadline(withLeases(batched, { maxBytes }))
    return { name, store, isOpen: guarded.isOpen }
  }

  const shielded = shield && createShield(shield, log)
  let made: { by: string; parts: Parts } | undefined

  return (env) => {
    const credentials = names.map((name) => credentialsOf(env, name))
    const secret = env.SLUICE_SECRET || credentials[0]!.token || 'sluice'
    const by = JSON.stringify([credentials, secret])
    if (made?.by !== by) {
      if (shards && !env.SLUICE_SECRET) {
        log(
          'no-secret',
          '',
          'set SLUICE_SECRET: without it the token of the first database names clients',
        )
      }
      const denialCache = hasDenialCache ? createDenialCache() : undefined
      const databases = names.map((name) => databaseOf(env, name))
      const store = shards
        ? createShards(databases as { name: string; store: Store }[], {
            onRefund(subjects, error) {
              denialCache?.forget(Date.now(), subjects)
              if (error) onStoreError(error)
            },
          })
        : databases[0]!.store
      const nameSubject = hashKeys ? hashedSubjects(secret) : plainSubjects(secret)
      made = { by, parts: { store, databases, local, nameSubject, denialCache, onStoreError } }
    }
    const { parts } = made
    if (!shielded) return parts
    return { ...parts, shield: async (key) => shielded(env, await parts.nameSubject(key)) }
  }
}
