/** Wires the limiter: the rules of a configuration, and its stack of store layers. */

import { createLive } from '../../features/live/live.ts'
import { createShield } from '../../features/shield/shield.ts'
import { type Bindings, credentialsOf, variablesOf } from '../base/bindings.ts'
import { createLog, type Log } from '../base/log.ts'
import type { Observer } from '../base/observer.ts'
import type { OnRefund } from '../base/several-stores.ts'
import { type Config, parseLive } from '../config/parse.ts'
import { type BatchingOptions, withBatching } from '../connection/batching.ts'
import { withBreaker } from '../connection/breaker.ts'
import { withDeadline } from '../connection/deadline.ts'
import type { Store } from '../connection/store.ts'
import { createUpstashReader, createUpstashStore } from '../connection/upstash/upstash.ts'
import { createLocalStore } from '../fallback/local.ts'
import { keyReaders } from '../program/key.ts'
import { compileMatcher, type Matcher } from '../program/match.ts'
import { hashedSubjects, plainSubjects } from '../program/subject.ts'
import { addressReader, type ReadAddress } from '../request/client-address.ts'
import type { RuntimeContext } from '../request/view.ts'
import { checkCounterConflicts } from './counter-conflicts.ts'
import { databaseFrom } from './database.ts'
import { createDenialCache } from './denial-cache.ts'
import type { LimiterParts } from './question.ts'

/** The memory for the leases of all databases together. An isolate has 128 MB. */
const MAX_LEASE_BYTES = 4 * 1024 * 1024

/** A configuration and its compiled matcher. */
export interface Rules {
  config: Config
  match: Matcher
}

/** One database with its stack of layers. */
export interface Database {
  /** Undefined if there is only one database. */
  name: string | undefined
  store: Store
  /** True if the circuit breaker is open. */
  isOpen: () => boolean
}

/** The parts of a limiter for one set of credentials, with its databases. */
export interface DeployedParts extends LimiterParts {
  databases: Database[]
}

/** The rules and the store that gateway, decision API and middleware share. */
export interface Limiter {
  /** The deployed configuration. */
  config: Config
  log: Log
  readAddress: ReadAddress
  /** The rules in force: those of the live document if there is one, otherwise those of the deployment. */
  rulesOf: (runtime: RuntimeContext) => Rules
  partsOf: (env: Bindings) => DeployedParts
  /** Undefined without `observe` in the configuration. */
  observer: Observer | undefined
}

/**
 * Creates the limiter of a configuration.
 * @param options the object that `config` was parsed from
 * @throws {ConfigError} if another configuration of the Worker shares counters with this one, but with other terms
 */
export function createLimiter(config: Config, options: object): Limiter {
  checkCounterConflicts(config)
  const log = createLog()
  const observer = config.observe?.create({ log })
  return {
    config,
    log,
    readAddress: addressReader(config.clientAddress, log),
    rulesOf: createRules(config, options, log, observer),
    partsOf: createParts(config, log, observer),
    observer,
  }
}

function createRules(
  config: Config,
  options: object,
  log: Log,
  observer: Observer | undefined,
): (runtime: RuntimeContext) => Rules {
  // All documents share the readers, so that new policies do not download an issuer's keys again.
  const readers = keyReaders(config, log)
  const compiled = (config: Config): Rules => ({
    config,
    match: compileMatcher(config, log, readers),
  })
  const own = compiled(config)
  const { live } = config
  if (!live) return () => own
  return createLive<Rules>({
    live,
    fallback: own,
    compile: (document) => compiled(parseLive(document, options)),
    read: (runtime) => readLive(live, config, runtime, observer),
    log,
  })
}

/** Reads the text of the live document. Of several databases the first one has it. */
async function readLive(
  { from, key }: NonNullable<Config['live']>,
  config: Config,
  { env }: RuntimeContext,
  observer: Observer | undefined,
): Promise<string | null> {
  if (from === 'redis') {
    const database = databaseFrom(config, env, config.shards?.names[0])
    return createUpstashReader({ ...database, observer })(key)
  }
  const namespace = env[from.slice('kv:'.length)] as { get(key: string): Promise<string | null> }
  return namespace.get(key)
}

/**
 * Stacks the layers on the store of one database. From the outside in: deadline, leases, batching, breaker.
 * @param batchingOptions for simulations only
 */
export function stackOn(
  upstash: Store,
  name: string | undefined,
  { batching, shards, leases }: Pick<Config, 'batching' | 'shards' | 'leases'>,
  log: Log,
  batchingOptions?: BatchingOptions,
): Database {
  const guarded = withBreaker(upstash, {
    onOpen: (code) => log('breaker-opened', code, 'circuit open: calls fail for a while', name),
    onClose: (openMs) =>
      log('breaker-closed', '', `circuit closed: it was open for ${openMs} ms`, name),
  })
  const batched = batching ? withBatching(guarded, batchingOptions) : guarded
  const maxBytes = MAX_LEASE_BYTES / (shards?.names.length ?? 1)
  const store = withDeadline(leases ? leases.layer(batched, { maxBytes }) : batched)
  return { name, store, isOpen: guarded.isOpen }
}

/** Returns a function for the parts. It keeps them until the credentials change, which they do not within an isolate. */
export function createParts(
  config: Config,
  log: Log,
  observer?: Observer,
): (env: Bindings) => DeployedParts {
  const { clock, namespace, hashKeys, shield, shards, cluster } = config
  const names = shards?.names ?? [undefined]
  const shielded = shield && createShield(shield, log)
  const onStoreError: LimiterParts['onStoreError'] = ({ code, message, store }) => {
    if (code !== 'circuit-open') log('store-error', code, message, store) // `breaker-opened` is already logged
  }

  function databaseOf(env: Bindings, name: string | undefined): Database {
    const upstash = createUpstashStore({
      ...databaseFrom(config, env, name),
      clock,
      namespace,
      onReload: () => log('script-reloaded', '', 'the script was lost and reloaded', name),
      observer,
    })
    const store = cluster ? (cluster.bySlot(upstash) as Store) : upstash
    return stackOn(store, name, config, log)
  }

  function partsFor(env: Bindings, secret: string): DeployedParts {
    const local = createLocalStore()
    const denialCache = config.denialCache ? createDenialCache() : undefined
    const databases = names.map((name) => databaseOf(env, name))
    const onRefund: OnRefund = (subjects, error) => {
      denialCache?.forget(Date.now(), subjects)
      if (error) onStoreError(error)
    }
    const stores = databases.map(({ store }) => store)
    const [first] = stores as [Store]
    const store = (shards?.createSharded(stores, onRefund) ??
      cluster?.createStore(first, onRefund) ??
      first) as Store
    const hash = hashedSubjects(secret)
    const nameSubject = hashKeys ? hash : plainSubjects(secret)
    const observed = observer && { observer, hash }
    return { store, databases, local, nameSubject, denialCache, onStoreError, observed }
  }

  const variables = ['SLUICE_SECRET', ...names.flatMap((name) => Object.values(variablesOf(name)))]
  let values: unknown[] | undefined
  let parts: DeployedParts
  return (env) => {
    const given = env as Record<string, unknown>
    if (!values || variables.some((name, index) => given[name] !== values![index])) {
      const { token } = credentialsOf(env, names[0])
      if (!env.SLUICE_SECRET && (shards || (config.store && !token))) {
        const other = token ? 'the token of the first database' : 'a constant'
        log('no-secret', '', `set SLUICE_SECRET; until then ${other} replaces it`)
      }
      parts = partsFor(env, env.SLUICE_SECRET || token || 'sluice')
      values = variables.map((name) => given[name])
    }
    if (!shielded) return parts
    return { ...parts, shield: async (key) => shielded(env, await parts.nameSubject(key)) }
  }
}
