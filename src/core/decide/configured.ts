/** Whether the environment names the databases of a configuration. */
import { type Bindings, credentialsOf, isRestUrl, variablesOf } from '../base/bindings.ts'
import { ConfigError, type ConfigProblem } from '../base/errors.ts'
import { databasesOf } from '../config/feature.ts'
import type { Config } from '../config/parse.ts'
import type { UpstashDatabase } from '../connection/upstash/upstash.ts'
import { databaseFrom } from './database.ts'

/** A database that the environment does not name. */
export interface MissingDatabase {
  /** The variable to set. Absent if the database does not come from a variable. */
  variable?: string
  /** The name of the database, if there are several. */
  store?: string | undefined
  /** What to do. Contains names of variables, never their values. */
  detail: string
  /** What the variable has. Never its value. */
  got?: string
}

/** There is no database. */
export class NotConfigured extends ConfigError {}

type Find = (store: string | undefined) => UpstashDatabase

/**
 * The databases that the environment does not name.
 * @param find finds a database. Defaults to a search in the environment
 */
export const missingDatabases = (
  config: Config,
  env: Bindings,
  find: Find = (store) => databaseFrom(config, env, store),
): MissingDatabase[] =>
  databasesOf(config).flatMap((store) => missingParts(config, env, store, find))

/** The error of missing databases. Its messages name the variables. */
export const notConfigured = (missing: MissingDatabase[]): NotConfigured =>
  new NotConfigured(
    missing.map(
      ({ variable, store, detail, got = 'nothing' }): ConfigProblem => ({
        path: variable ?? 'store',
        expected: `a database. ${detail} For previews without one write unconfigured: 'local'`,
        got,
        ...(store !== undefined && { within: store }),
      }),
    ),
  )

/** What a database lacks. A client of the app may have its credentials from anywhere, but most have them from these variables. */
function missingParts(
  config: Config,
  env: Bindings,
  store: string | undefined,
  find: Find,
): MissingDatabase[] {
  const own = config.store?.own
  if (own) return own.problems(env)
  const { send, problem } = find(store)
  if (send) return []
  const variables = variablesOf(store)
  const { url, token } = credentialsOf(env, store)
  const missing: MissingDatabase[] = []
  if (!isRestUrl(url)) {
    const example = 'https://eu1-name-12345.upstash.io'
    const detail = `Set it to the REST URL of the database, such as "${example}".`
    missing.push({ variable: variables.url, detail, got: schemeOf(url) })
  }
  if (!token) {
    missing.push({ variable: variables.token, detail: 'Set it to the REST token of the database.' })
  }
  if (!config.store || missing[0]) return missing
  // Anybody can read this, so it has no message of an error.
  const detail = problem
    ? 'The function in store failed. The log has its error (store-error).'
    : 'The function in store returned no client of @upstash/redis with a URL and a token.'
  return [{ store, detail }]
}

/** The beginning of a URL. The rest of a URL of Redis contains its password. */
const schemeOf = (url: string | undefined) =>
  url ? `a value that begins with ${/^[a-z]{1,8}:\/\//i.exec(url)?.[0] ?? 'no scheme'}` : 'nothing'
