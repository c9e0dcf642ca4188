import {
  type Bindings,
  credentialsOf,
  foundIn,
  isQuoted,
  isRestUrl,
  variablesIn,
} from '../base/bindings.ts'
import type { ClientVariables } from '../base/commands.ts'
import { ConfigError, type ConfigProblem, StoreError } from '../base/errors.ts'
import type { Config } from '../config/parse.ts'
import type { UpstashDatabase } from '../connection/upstash/upstash.ts'

/** A variable of the database that the environment does not have, or has with a wrong value. */
export interface MissingPart {
  /** The variable to set. Absent if the database does not come from a variable. */
  variable?: string
  /** What to do. Contains names of variables, never their values. */
  detail: string
}

export class NotConfigured extends ConfigError {}

export const missingParts = (config: Config, env: Bindings): MissingPart[] =>
  problemsIn(config, env, config.store?.own ? {} : databaseIn(config, env)).map(
    ({ path, expected, hint }) => ({
      ...(path === 'store' ? {} : { variable: path }),
      detail: [path !== 'store' && `Set it to ${expected}.`, hint].filter(Boolean).join(' '),
    }),
  )

/** The error of a database that is missing. Its messages name the variables. */
export function notConfigured(config: Config, env: Bindings, database: UpstashDatabase) {
  const problems = problemsIn(config, env, database)
  const last = problems.at(-1)
  if (!last) return undefined
  const hint = [last.hint, ELSEWHERE].filter(Boolean).join(' ')
  return new NotConfigured([...problems.slice(0, -1), { ...last, hint }])
}

const ELSEWHERE =
  "With a Redis of your own set REDIS_URL on Node, Bun or Deno, or write store: redis(client), with redis from 'sluice/redis'. npx sluice dev and npx sluice bridge start one on your machine. For previews without a database write unconfigured: 'local'"

/** A client of the app may have its credentials from anywhere, but most have them from these variables. */
function problemsIn(config: Config, env: Bindings, { send, problem }: UpstashDatabase) {
  const none = { path: 'store', expected: 'a database', got: 'nothing' }
  const own = config.store?.own
  if (own) return own.problems(env).map(({ detail }) => ({ ...none, hint: detail }))
  if (send) return []
  const names = variablesIn(env)
  const { url, token } = credentialsOf(env)
  const missing: ConfigProblem[] = []
  if (!isRestUrl(url)) {
    const expected = 'the REST URL of the database, such as "https://eu1-name-12345.upstash.io"'
    missing.push({ path: names.url, expected, ...foundIn(url) })
  }
  if (!token || isQuoted(token)) {
    const expected = 'the REST token of the database'
    missing.push({ path: names.token, expected, ...foundIn(token) })
  }
  if (!config.store || missing[0]) return missing
  // Anybody can read this, so it has no message of an error.
  const hint = problem
    ? 'The function in store failed. The log has its error (store-error).'
    : 'The function in store returned no client of @upstash/redis with a URL and a token.'
  return [{ ...none, hint }]
}

/**
 * How to reach the database: through the client of the app, or by the REST API. A client that cannot be created leaves it `not-configured`,
 * like a missing URL, with the error of the function as the problem.
 * @throws {ConfigError} if an option of the client makes limits inexact
 */
export function databaseIn({ store }: Pick<Config, 'store'>, env: Bindings): UpstashDatabase {
  const { url, token } = credentialsOf(env)
  if (!store) return { url, token }
  const variables: ClientVariables = {
    ...env,
    UPSTASH_REDIS_REST_URL: url,
    UPSTASH_REDIS_REST_TOKEN: token,
  }
  try {
    return { send: store.connect(variables) }
  } catch (error) {
    if (error instanceof ConfigError) throw error
    return error instanceof StoreError ? {} : { problem: describe(error, variables) }
  }
}

const MAX_LENGTH = 200

/** The name and the message of an error, without the values of variables. */
function describe(error: unknown, variables: ClientVariables): string {
  const { name = 'Error', message = error } = Object(error) as Partial<Error>
  const secrets = Object.values(variables).filter(
    (value): value is string => typeof value === 'string' && value.length >= 8,
  )
  const longestFirst = secrets.toSorted((one, other) => other.length - one.length)
  return longestFirst
    .reduce((text, secret) => text.replaceAll(secret, '…'), `${name}: ${message}`)
    .slice(0, MAX_LENGTH)
}
