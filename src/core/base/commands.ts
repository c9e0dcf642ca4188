/** The interface between the store and the client that sends its commands. Types only. */

/** A command of Redis: its name and its arguments. */
export type Command = readonly (string | number)[]

/** The answer of Redis to one command: a result or an error text. */
export type CommandAnswer = { result: unknown } | { error: string }

/**
 * Sends commands to one database, in order and in one HTTP request, exactly once. Each command gets its answer.
 * @param signal ends a call that hangs. Absent on Workers, where the runtime ends it with its request
 * @throws {unknown} if Redis has given no answer
 */
export type SendCommands = (
  commands: readonly Command[],
  signal?: AbortSignal,
) => Promise<CommandAnswer[]>

/** The variables and secrets of a Worker, and the URL and the token of one database. */
export type ClientVariables = Record<string, unknown> & {
  UPSTASH_REDIS_REST_URL?: string
  UPSTASH_REDIS_REST_TOKEN?: string
}

/** The result of `upstash()`. */
export interface StoreClient {
  /**
   * Creates the sender for a database.
   * @param env with several databases, those of this one have the names without a suffix
   * @throws {ConfigError} if an option of the client makes limits inexact
   */
  connect(env: ClientVariables): SendCommands
}
