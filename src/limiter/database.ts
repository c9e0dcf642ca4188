import { type Bindings, credentialsOf } from '../base/bindings.ts'
import { ConfigError } from '../base/errors.ts'
import type { Config } from '../config/parse.ts'
import type { UpstashDatabase } from '../store/upstash/upstash.ts'

/**
 * How to reach a database: through the client of the app, or by the REST API. A client that cannot be created leaves the database
 * `not-configured`, like a missing URL.
 * @param name undefined if there is only one database
 * @throws {ConfigError} if an option of the client makes limits inexact
 */
export function databaseFrom(
  { store }: Pick<Config, 'store'>,
  env: Bindings,
  name: string | undefined,
): UpstashDatabase {
  const { url, token } = credentialsOf(env, name)
  if (!store) return { url, token }
  const own = {
    ...(url !== undefined && { UPSTASH_REDIS_REST_URL: url }),
    ...(token !== undefined && { UPSTASH_REDIS_REST_TOKEN: token }),
  }
  try {
    return { send: store.connect(name === undefined ? { ...env } : { ...env, ...own }) }
  } catch (error) {
    if (error instanceof ConfigError) throw error
    return {}
  }
}
