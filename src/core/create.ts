/** Wires the limiter: the rules of a configuration, and its stack of store layers. */

import { type Bindings, credentialsOf, variablesIn } from './base/bindings.ts'
import type { OwnStore } from './base/commands.ts'
import { createLog, type Log } from './base/log.ts'
import { type Lack, parseFor } from './config/host.ts'
import type { Config } from './config/parse.ts'
import { connect } from './connection/connection.ts'
import { withDeadline } from './connection/deadline.ts'
import type { OnRefund, Store } from './connection/store.ts'
import type { ScriptPart } from './connection/upstash/part.ts'
import {
  createUpstashStore,
  type UpstashDatabase,
  type UpstashStore,
} from './connection/upstash/upstash.ts'
import { notConfigured } from './decide/configured.ts'
import { databaseIn } from './decide/database.ts'
import { createDenialCache } from './decide/denial-cache.ts'
import type { Database, DeployedParts, LimiterParts, Rules } from './decide/question.ts'
import { hashedSubjects, plainSubjects } from './decide/subject.ts'
import { type FallbackOptions, withFallback } from './fallback/fallback.ts'
import { createLocalStore } from './fallback/local.ts'
import {
  type Feature,
  featuresOf,
  type Limiter,
  type Stages,
  stagesOf,
  type WatchedDatabase,
} from './feature.ts'
import { keyReaders } from './program/key.ts'
import { compileMatcher } from './program/match.ts'
import { addressReader } from './request/client-address.ts'
import type { RuntimeContext } from './request/view.ts'

export type { Limiter } from './feature.ts'

/** The host of a limiter. */
export interface Host {
  /** The features that it has besides those of `use`. Defaults to none. */
  byDefault?: readonly Feature[]
  /** The parts of the general script that it needs besides those of features. Defaults to none. */
  lua?: readonly ScriptPart[]
  /** Defaults to nothing. */
  lacks?: readonly Lack[]
}

/**
 * Creates the limiter of a configuration.
 * @throws {ConfigError} if the configuration is invalid, if a field needs another feature or another host, or if another configuration of the Worker shares counters with this one, but
 * with other terms
 */
export function createLimiter(
  options: object,
  { byDefault = [], lua = [], lacks = [] }: Host = {},
): Limiter {
  const parse = (options: object) => parseFor(options, byDefault, lacks)
  const config = parse(options)
  const log = createLog()
  const stages = stagesOf({ config, log }, featuresOf(config, byDefault), lua)
  return {
    config,
    log,
    readAddress: addressReader(config.clientAddress, log, stages.networks),
    rulesOf: createRules(config, options, log, parse, stages),
    partsOf: createParts(config, log, stages),
    stages,
  }
}

function createRules(
  config: Config,
  options: object,
  log: Log,
  parse: (options: object) => Config,
  stages: Stages,
): (runtime: RuntimeContext) => Rules {
  // All documents share the readers, so that new policies do not download an issuer's keys again.
  const readers = keyReaders(config, log, stages.claims)
  const compiled = (config: Config): Rules => ({
    config,
    match: compileMatcher(config, log, stages, readers),
  })
  const own = compiled(config)
  const { rules, observer } = stages
  return rules
    ? rules({ own, options, compile: (changed) => compiled(parse(changed)), observer })
    : () => own
}

/** The settings of the layers of a store. */
interface Stack {
  batching: boolean
  log: Log
  layer: Stages['layer'] | undefined
  watch: Stages['watch'] | undefined
  fallback: FallbackOptions
  /** For the stage `watch`. */
  watched: WatchedDatabase
}

/** Stacks the layers on the store. From the outside in: fallback, deadline, those of features, connection. */
function stackOn(
  store: Store,
  { batching, log, layer, watch, fallback, watched }: Stack,
): Database {
  const connection = connect(store, {
    batching,
    onOpen: (code) => log('breaker-opened', code, 'circuit open: calls fail for a while'),
    onClose: (openMs) => log('breaker-closed', '', `circuit closed: it was open for ${openMs} ms`),
  })
  const layered = layer ? layer(connection) : connection
  const bounded = withDeadline(watch ? watch(layered, watched) : layered)
  return { store: withFallback(bounded, fallback), isOpen: connection.isOpen }
}

/** Returns a function for the parts. It keeps them until the credentials change, which they do not within an isolate. */
export function createParts(
  config: Config,
  log: Log,
  stages: Stages = {},
): (env: Bindings) => DeployedParts {
  // Durable Objects replace the database and its batching.
  const own = config.store?.own as OwnStore<Store> | undefined
  const { clock, namespace, hashKeys } = config
  const { askShield, layer, lua, nameValues, observer, waiting, watch, wrap } = stages
  const { batching = config.batching, spread = stages.spread } = own ?? {}
  const onStoreError: LimiterParts['onStoreError'] = ({ code, message }) => {
    if (code !== 'circuit-open') log('store-error', code, message) // `breaker-opened` is already logged
  }

  function partsFor(
    env: Bindings,
    secret: string,
    found: UpstashDatabase,
    isLocal: boolean,
  ): DeployedParts {
    const denialCache = config.denialCache ? createDenialCache() : undefined
    const onRefund: OnRefund = (subjects, error) => {
      denialCache?.forget(Date.now(), subjects)
      if (error) onStoreError(error)
    }
    const local = createLocalStore(undefined, undefined, stages.algorithms)
    const fallback = { local, denialCache, onRefund, isLocal, onStoreError }
    const onReload = () => log('script-reloaded', '', 'the script was lost and reloaded')
    const upstash =
      own?.create(env, config) ??
      createUpstashStore({ ...found, clock, namespace, lua, onReload, observer })
    const wrapped = wrap ? wrap(upstash as UpstashStore) : upstash
    const watched = { ...found, observer }
    const database = stackOn(wrapped, { batching, log, layer, watch, fallback, watched })
    const store = spread ? spread(database.store, onRefund) : database.store
    const hash = hashedSubjects(secret)
    const nameSubject = hashKeys ? hash : plainSubjects(secret)
    const observed = observer && { observer, hash }
    const naming = { nameSubject, nameValues }
    return { store, database, ...naming, denialCache, onStoreError, observed, waiting }
  }

  function hasChanged(given: Record<string, unknown>): boolean {
    for (let index = 0; index < variables.length; index += 1) {
      if (given[variables[index]!] !== values![index]) return true
    }
    return false
  }

  let variables: string[] = []
  let values: unknown[] | undefined
  let parts: DeployedParts
  return (env) => {
    const given = env as Record<string, unknown>
    if (!values || hasChanged(given)) {
      const found = own ? {} : databaseIn(config, env)
      // Without a policy nothing is counted.
      const missing =
        config.policies[0] || config.live ? notConfigured(config, env, found) : undefined
      if (missing && config.unconfigured !== 'local') throw missing
      if (missing) {
        const message = "no database: each isolate counts by itself, as unconfigured: 'local' says"
        log('unconfigured', '', message)
      }
      const { token } = credentialsOf(env)
      if (config.store && !token && !env.SLUICE_SECRET) {
        log('no-secret', '', 'set SLUICE_SECRET; until then a constant replaces it')
      }
      const secret = env.SLUICE_SECRET || token || 'sluice'
      parts = partsFor(env, secret, found, missing !== undefined)
      const { url, token: name } = variablesIn(env)
      variables = ['SLUICE_SECRET', url, name]
      values = variables.map((name) => given[name])
    }
    if (!askShield) return parts
    return { ...parts, shield: async (key) => askShield(env, await parts.nameSubject(key)) }
  }
}
