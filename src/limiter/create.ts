import { type Bindings, credentialsOf } from '../base/bindings.ts'
import { createLog, type Log } from '../base/log.ts'
import { type Config, parseLive } from '../config/parse.ts'
import { keyReaders } from '../match/key.ts'
import { compileMatcher, type Matcher } from '../match/match.ts'
import { hashedSubjects, plainSubjects } from '../match/subject.ts'
import type { RuntimeContext } from '../request/view.ts'
import { type BatchingOptions, withBatching } from '../store/batching.ts'
import { withBreaker } from '../store/breaker.ts'
import { withDeadline } from '../store/deadline.ts'
import { withLeases } from '../store/leases/leases.ts'
import { createLocalStore } from '../store/local/local.ts'
import { createShards } from '../store/shards/shards.ts'
import type { Store } from '../store/store.ts'
import { createUpstashReader, createUpstashStore } from '../store/upstash/upstash.ts'
import { checkCounterConflicts } from './counter-conflicts.ts'
import { createDenialCache } from './denial-cache.ts'
import { createLive } from './live.ts'
import type { LimiterParts } from './question.ts'
import { createShield } from './shield.ts'

/** For the leases of all databases together: an isolate has some 128 MB. */
const MAX_LEASE_BYTES = 4 * 1024 * 1024

/** A configuration, and the matcher that it compiles to. */
export interface Rules {
  config: Config
  match: Matcher
}

/** A database by itself. */
export interface Database {
  /** Set only where there are several databases. */
  name: string | undefined
  store: Store
  /** Whether the breaker refuses calls now. */
  isOpen: () => boolean
}

/** The parts of a limiter for one set of credentials, and each of its databases. */
export interface DeployedParts extends LimiterParts {
  databases: Database[]
}

/** What proxy, decision API and middleware share: they decide by the same rules, on the same store. */
export interface Limiter {
  /** The configuration of the deployment. */
  config: Config
  log: Log
  /** The rules that hold now: those of a live document, if there is one. */
  rulesOf: (runtime: RuntimeContext) => Rules
  partsOf: (env: Bindings) => DeployedParts
}

/**
 * Wires a limiter.
 * @param options what `config` was parsed from
 * @throws {ConfigError} where another configuration of the Worker shares counters with this one by other terms
 */
export function createLimiter(config: Config, options: object): Limiter {
  checkCounterConflicts(config)
  const log = createLog()
  return {
    config,
    log,
    rulesOf: createRules(config, options, log),
    partsOf: createParts(config, log),
  }
}

function createRules(
  config: Config,
  options: object,
  log: Log,
): (runtime: RuntimeContext) => Rules {
  // One for all documents: an issuer's keys stay in hand, whatever the policies do.
  const readers = keyReaders(config, log)
  const compiled = (config: Config): Rules => ({
    config,
    match: compileMatcher(config, log, readers),
  })
  const own = compiled(config)
  const { live, shards } = config
  if (!live) return () => own
  return createLive<Rules>({
    live,
    fallback: own,
    compile: (document) => compiled(parseLive(document, options)),
    read: (runtime) => readLive(live.from, live.key, shards?.[0], runtime),
    log,
  })
}

/** @param store which of several databases has the document */
async function readLive(
  from: string,
  key: string,
  store: string | undefined,
  { env }: RuntimeContext,
): Promise<string | null> {
  if (from === 'redis') return createUpstashReader(credentialsOf(env, store))(key)
  const namespace = env[from.slice('kv:'.length)] as { get(key: string): Promise<string | null> }
  return namespace.get(key)
}

/**
 * The store of one database as it is deployed: leases over batching over the breaker, within the caller's deadline.
 * @param batchingOptions set by a simulation only
 */
export function stackOn(
  upstash: Store,
  name: string | undefined,
  { batching, shards }: Pick<Config, 'batching' | 'shards'>,
  log: Log,
  batchingOptions?: BatchingOptions,
): Database {
  const guarded = withBreaker(upstash, {
    onOpen: (code) => log('breaker-opened', code, 'the database is not asked for a while', name),
    onClose: (openMs) =>
      log('breaker-closed', '', `the database answers again after ${openMs} ms`, name),
  })
  const batched = batching ? withBatching(guarded, batchingOptions) : guarded
  const maxBytes = MAX_LEASE_BYTES / (shards?.length ?? 1)
  const store = withDeadline(withLeases(batched, { maxBytes }))
  return { name, store, isOpen: guarded.isOpen }
}

/** Makes the parts once for each set of credentials, which an isolate does not change. */
export function createParts(config: Config, log: Log): (env: Bindings) => DeployedParts {
  const { clock, namespace, hashKeys, shield, shards } = config
  const names = shards ?? [undefined]
  const local = createLocalStore()
  const shielded = shield && createShield(shield, log)
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
    return stackOn(upstash, name, config, log)
  }

  function partsFor(env: Bindings, secret: string): DeployedParts {
    const denialCache = config.denialCache ? createDenialCache() : undefined
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
    return { store, databases, local, nameSubject, denialCache, onStoreError }
  }

  let made: { by: string; parts: DeployedParts } | undefined
  return (env) => {
    const credentials = names.map((name) => credentialsOf(env, name))
    const secret = env.SLUICE_SECRET || credentials[0]!.token || 'sluice'
    const by = JSON.stringify([credentials, secret])
    if (made?.by !== by) {
      if (shards && !env.SLUICE_SECRET) {
        const advice = 'set SLUICE_SECRET: without it the token of the first database names clients'
        log('no-secret', '', advice)
      }
      made = { by, parts: partsFor(env, secret) }
    }
    const { parts } = made
    if (!shielded) return parts
    return { ...parts, shield: async (key) => shielded(env, await parts.nameSubject(key)) }
  }
}
