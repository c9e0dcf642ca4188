/** The interface between the store and the client that sends its commands. */
import type { StoreError } from './errors.ts'

/** How long a call may run after its deadline, so that its late reply can be used, ms. */
export const LATE_MS = 5_000

/** The name of a command of Redis, and its arguments. */
export type Command = readonly (string | number)[]

export type CommandAnswer = { result: unknown } | { error: string }

/**
 * Sends commands to one database, in order and in one HTTP request, exactly once. Each command gets its answer, or the error of its own
 * connection.
 * @param signal ends a request that hangs. Absent on Workers, where the runtime ends it with its request, and for a client of the app
 * @param deadlineMs how long the caller waits, ms. A client with a queue sends no command later
 * @throws {unknown} if Redis has given no answer
 */
export type SendCommands = (
  commands: readonly Command[],
  signal: AbortSignal | undefined,
  deadlineMs: number,
) => Promise<(CommandAnswer | StoreError)[]>

/** The variables and secrets of a Worker, and the URL and the token of one database. */
export type ClientVariables = Record<string, unknown> & {
  UPSTASH_REDIS_REST_URL?: string | undefined
  UPSTASH_REDIS_REST_TOKEN?: string | undefined
}

/** The result of `upstash()`, `redis()` and `durableObjects()`: sends commands, or counts by itself. */
export interface StoreClient {
  /**
   * Creates the sender for a database.
   * @throws {ConfigError} if an option of the client makes limits inexact, or if the store has no commands
   */
  connect(env: ClientVariables): SendCommands
  /** Set if the store does not count in Redis. @internal */
  own?: OwnStore
  /** The stages `wrap` and `spread` of a store whose keys are in several places. They replace those of features. @internal */
  layers?: object
}

/** A store that counts without Redis. `Store` is an interface of the folder `connection`, which this folder does not import. */
export interface OwnStore<Store = unknown> {
  /** The name of its binding in the configuration of wrangler. */
  binding: string
  /** The store shares calls by itself, so there is no layer for that. */
  batching: false
  /** What the Worker lacks for this store, such as a binding. Names no values. */
  problems(env: object): { code: 'not-configured'; detail: string }[]
  /** Reports settings that do not work with this store. */
  check(
    config: SettingsOfStore,
    problem: (path: (string | number)[], expected: string) => void,
  ): void
  /** Creates the innermost layer. Every list has limits of one subject only. */
  create(env: object, config: { namespace?: string | undefined; batching: boolean }): Store
  /** Makes the outermost layer: splits requests with limits of several subjects. */
  spread(store: Store, onRefund: (subjects: string[], error?: StoreError) => void): Store
}

interface SettingsOfStore {
  use?: readonly { name: string }[]
  clock?: string | undefined
  live?: { from: string } | undefined
  policies?: readonly (object | undefined)[] | undefined
}
