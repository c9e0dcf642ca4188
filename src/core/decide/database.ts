import { type Bindings, credentialsOf } from '../base/bindings.ts'
import type { ClientVariables } from '../base/commands.ts'
import { ConfigError, StoreError } from '../base/errors.ts'
import type { Config } from '../config/parse.ts'
import type { UpstashDatabase } from '../connection/upstash/upstash.ts'

/**
 * How to reach the database: through the client of the app, or by the REST API. A client that cannot be created leaves the database
 * `not-configured`, like a missing URL, with the error of the function as the problem.
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
