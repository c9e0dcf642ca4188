/** The store of a limiter on Node, Bun and Deno that names none: the Redis of the variable `REDIS_URL`. */
import { foundIn, valueIn, variablesIn } from '../core/base/bindings.ts'
import type { StoreClient } from '../core/base/commands.ts'
import { ConfigError, type ConfigProblem, show } from '../core/base/errors.ts'
import { variablesFor } from '../core/base/variables.ts'
import { type RedisClient, redis } from './redis.ts'

const stores = new Map<string, StoreClient>()

/** Adds the store of `REDIS_URL` to options without a store, unless the variables name a database with a REST API. @throws {ConfigError} */
export function withRedisUrl<Options extends { store?: unknown; env?: object }>(
  options: Options,
  env: object | undefined = options?.env,
): Options {
  if (Object(options).store !== undefined) return options
  const variables = variablesFor(env)
  const { url: restUrl, token } = variablesIn(variables)
  const isRest = valueIn(variables, restUrl) || valueIn(variables, token)
  const url = isRest ? undefined : valueIn(variables, 'REDIS_URL')
  if (!url) return options
  const store = stores.get(url) ?? redis(connectionTo(checked(url)))
  stores.set(url, store)
  return { ...options, store }
}

/** @returns the URL as the client reads it: the number of the database in its path */
function checked(written: string): string {
  const problem = problemIn(written)
  if (problem) throw new ConfigError([{ path: 'REDIS_URL', ...problem }])
  const url = new URL(written)
  url.pathname = databaseIn(url)
  url.search = ''
  return url.href
}

const databaseIn = ({ pathname, searchParams }: URL) => searchParams.get('db') || pathname.slice(1)

/** What is wrong with a URL, without its password. */
function problemIn(written: string): Omit<ConfigProblem, 'path'> | undefined {
  const expected = 'a URL such as "redis://localhost:6379"'
  if (!/^\s*rediss?:\/\//i.test(written)) return { expected, ...foundIn(written) }
  const url = URL.canParse(written) ? new URL(written) : undefined
  if (!url?.hostname || !isEncoded(url) || !/^\d*$/.test(databaseIn(url))) {
    return {
      expected: 'redis://USER:PASSWORD@HOST:PORT/NUMBER, of which only HOST is required',
      got: 'another form',
      hint: 'Encode special characters of the password, such as %23 for #, %2F for /, %3F for ? and %25 for %. NUMBER is that of the database.',
    }
  }
  const other = [...url.searchParams.keys()].find((name) => name !== 'db')
  if (other === undefined) return
  return {
    expected: 'no parameter but db',
    got: show(other),
    hint: "A client takes all options: write store: redis(client), with redis from 'sluice/redis'.",
  }
}

/** Without it, a special character ends the password: the rest is in another part of the URL, with the host. */
function isEncoded({ username, password, search, hash }: URL): boolean {
  try {
    return !hash && !search.includes('@') && decodeURIComponent(`${username}:${password}`) !== ''
  } catch {
    return false
  }
}

/** The part of a client of `@redis/client` that a connection uses. */
interface Client {
  on(event: 'error', listener: () => void): void
  unref(): void
  connect(): Promise<unknown>
  destroy(): void
  sendCommand(...args: unknown[]): Promise<unknown>
}

interface UrlConnection {
  client: Promise<Client>
  lost: () => void
  /** The calls without an answer, and since when there was none, ms since the epoch. */
  unanswered: number
  silentSince: number
}

/** After this time without an answer a connection is given up, ms: the server may be gone without a word. */
const SILENT_MS = 5_000

/** One connection, which keeps no process alive. When it is lost, the next call opens another; the breaker bounds how often calls try. */
function connectionTo(url: string): RedisClient {
  let current: UrlConnection | undefined = opened()

  function opened(): UrlConnection {
    let client: Client | undefined
    const lost = () => {
      client?.destroy() // it may be open, with answers that are not understood
      if (current === connection) current = undefined
    }
    async function open(): Promise<Client> {
      // A dependency of this package. The type hides its own, which bring those of Node.
      const { createClient } = await import('@redis/client' as string)
      const made: Client = createClient({
        url,
        socket: { reconnectStrategy: false },
        maintNotifications: 'disabled', // for them it looks up [::1] as a name
      })
      client = made
      made.on('error', lost)
      made.unref()
      await made.connect()
      return made
    }
    const connection: UrlConnection = { client: open(), lost, unanswered: 0, silentSince: 0 }
    connection.client.catch(lost)
    return connection
  }

  return {
    async sendCommand(...args: unknown[]) {
      const now = Date.now()
      if (current && current.unanswered > 0 && now - current.silentSince > SILENT_MS) current.lost()
      current ??= opened()
      const connection = current
      if (connection.unanswered++ === 0) connection.silentSince = now
      try {
        const client = await connection.client
        const answer = await client.sendCommand(...args)
        connection.silentSince = Date.now()
        return answer
      } catch (error) {
        // Since a failover the server is a replica, and the host of the URL may be another one.
        if (/^READONLY\b/.test((error as Error).message)) connection.lost()
        throw error
      } finally {
        connection.unanswered -= 1
      }
    },
  }
}
