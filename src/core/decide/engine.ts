/** The engine: decides limits by name and key, by a configuration in normal form. It loads no schema, no request and no response. */
import { type Bindings, credentialsOf, variablesIn } from '../base/bindings.ts'
import type { OwnStore } from '../base/commands.ts'
import type { Decision } from '../base/decision.ts'
import type { Log } from '../base/log.ts'
import { needed } from '../base/needed.ts'
import type { Config } from '../config/parse.ts'
import type { Algorithms } from '../connection/algorithms/index.ts'
import { connect } from '../connection/connection.ts'
import { withDeadline } from '../connection/deadline.ts'
import type { OnRefund, Store } from '../connection/store.ts'
import type { ScriptPart } from '../connection/upstash/part.ts'
import {
  createUpstashStore,
  type UpstashDatabase,
  type UpstashOptions,
  type UpstashStore,
} from '../connection/upstash/upstash.ts'
import { withFallback } from '../fallback/fallback.ts'
import type { createLocalStore } from '../fallback/local.ts'
import { databaseIn, notConfigured } from './database.ts'
import type { createDenialCache } from './denial-cache.ts'
import type { NameValues } from './limit.ts'
import type { Observer } from './observer.ts'
import type { DeployedParts, LimiterParts, Waiting } from './question.ts'
import { hashedSubjects } from './subject.ts'

/** The places at which a feature takes part in a decision. */
export interface EngineStages {
  /** Asked before the store: returns the refusal of a subject, if there is one. */
  askShield?: (env: object, subject: string) => Promise<Decision | undefined>
  /** Parts of the general script, which lua/README.md describes. */
  lua?: readonly ScriptPart[]
  createDenialCache?: typeof createDenialCache
  /** Lets an isolate count by itself while the database does not answer. */
  createLocal?: typeof createLocalStore
  /** Algorithms with which an isolate counts by itself, by their names. */
  algorithms?: Algorithms
  nameValues?: NameValues
  /** Wraps the connection, inside of the deadline. */
  layer?: (store: Store) => Store
  /** Wraps the layers, inside of the deadline. It sees the reply to each call, also a late one. */
  watch?: (store: Store, database: WatchedDatabase) => Store
  waiting?: Waiting
  /** Wraps the store that sends the commands: the innermost layer. */
  wrap?: (store: UpstashStore) => Store
  /** Splits requests with limits in several parts of the store. The outermost layer. */
  spread?: (store: Store, onRefund: OnRefund) => Store
  observer?: Observer
}

export type WatchedDatabase = Pick<UpstashOptions, 'url' | 'token' | 'send' | 'observer'>

export interface Engine {
  config: Config
  log: Log
  /** The parts for these variables, kept until the credentials change, which they do not within an isolate. */
  partsOf: (env: Bindings) => DeployedParts
}

/** True if an isolate may count by itself. A live document may have any policy. */
export const countsLocally = ({ live, policies, unconfigured }: Config): boolean =>
  Boolean(live) ||
  unconfigured === 'local' ||
  policies.some(({ onStoreError }) => onStoreError === 'local')

export function createEngine(config: Config, log: Log, stages: EngineStages = {}): Engine {
  // Durable Objects replace the database and its batching.
  const own = config.store?.own as OwnStore<Store> | undefined
  const { clock, namespace } = config
  const { askShield, createLocal, layer, lua, nameValues, observer, waiting, watch } = stages
  const { wrap, spread: spreadBy }: EngineStages = config.store?.layers ?? stages
  const { batching = config.batching, spread = spreadBy } = own ?? {}
  if (countsLocally(config)) needed(createLocal, 'local')
  const onStoreError: LimiterParts['onStoreError'] = ({ code, message }) => {
    if (code !== 'circuit-open') log('store-error', code, message) // `breaker-opened` is already logged
  }

  function partsFor(env: Bindings, secret: string, found: UpstashDatabase, isLocal: boolean) {
    const denialCache = config.denialCache
      ? needed(stages.createDenialCache, 'denialCache')()
      : undefined
    const onRefund: OnRefund = (subjects, error) => {
      denialCache?.forget(Date.now(), subjects)
      if (error) onStoreError(error)
    }
    const local = createLocal?.(undefined, undefined, stages.algorithms)
    const onReload = () => log('script-reloaded', '', 'the script was lost and reloaded')
    const upstash =
      own?.create(env, config) ??
      createUpstashStore({ ...found, clock, namespace, lua, onReload, observer })
    // The layers, from the inside out.
    const connection = connect(wrap ? wrap(upstash as UpstashStore) : upstash, {
      batching,
      onOpen: (code) => log('breaker-opened', code, 'circuit open: calls fail for a while'),
      onClose: (openMs) =>
        log('breaker-closed', '', `circuit closed: it was open for ${openMs} ms`),
    })
    const layered = layer ? layer(connection) : connection
    const watched = watch ? watch(layered, { ...found, observer }) : layered
    const fallback = { local, denialCache, onRefund, isLocal, onStoreError }
    const { health } = connection
    const database = { store: withFallback(withDeadline(watched), fallback), health }
    const store = spread ? spread(database.store, onRefund) : database.store
    const naming = { nameSubject: hashedSubjects(secret), nameValues }
    return { store, database, ...naming, denialCache, onStoreError, observer, waiting }
  }

  let variables: string[] = []
  let values: unknown[] | undefined
  let parts: DeployedParts
  /** A variable of the process takes Node as long as a lookup of a subject, so the same object is read once. */
  let seen: Bindings | undefined
  function partsOf(env: Bindings): DeployedParts {
    const given = env as Record<string, unknown>
    if (env !== seen && !values?.every((value, index) => given[variables[index]!] === value)) {
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
      if (config.store && !token && !env.SLUICE_SECRET)
        log('no-secret', '', 'set SLUICE_SECRET; until then a constant replaces it')
      const secret = env.SLUICE_SECRET || token || 'sluice'
      parts = partsFor(env, secret, found, missing !== undefined)
      const { url, token: name } = variablesIn(env)
      variables = ['SLUICE_SECRET', url, name]
      values = variables.map((name) => given[name])
    }
    seen = env
    if (!askShield) return parts
    return { ...parts, shield: async (key) => askShield(env, await parts.nameSubject(key)) }
  }
  return { config, log, partsOf }
}
