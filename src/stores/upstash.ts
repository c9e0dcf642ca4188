/** `sluice/upstash`: the database through the client of the app. */
import type { Command, CommandAnswer, SendCommands, StoreClient } from '../core/base/commands.ts'
import { ConfigError, type ConfigProblem, StoreError } from '../core/base/errors.ts'
import { isCloudflare } from '../core/base/runtime.ts'

export type { ClientVariables, StoreClient } from '../core/base/commands.ts'

/** The part of a client of `@upstash/redis` that the limiter uses. */
export interface UpstashClient extends Scripts {
  get(key: string): Promise<unknown>
  pipeline(): Scripts & {
    exec(options: { keepErrors: true }): Promise<{ result?: unknown; error?: string | undefined }[]>
  }
}

interface Scripts {
  eval(script: string, keys: string[], args: string[]): unknown
  evalsha(sha: string, keys: string[], args: string[]): unknown
}

/**
 * The options of a client that make limits exact: each call is sent once, and its reply is not changed.
 * @example
 * const redis = new Redis({ url, token, ...exactOptions })
 */
export const exactOptions = {
  /** `retry: false` sends a call a second time after a lost connection, and so charges it twice. */
  retry: { retries: 0 },
  /** The client would parse each reply as JSON. */
  automaticDeserialization: false,
  /** Requests of one isolate would share a call. On Workers a request must not await the call of another one. */
  enableAutoPipelining: false,
  /** Requests of one isolate would share a sync token, which makes a read wait for the writes of others. */
  readYourWrites: false,
  /** A reply is ASCII, so its encoding in base64 only costs time. The limiter accepts both. */
  responseEncoding: false,
  /** Ends a call that hangs. Workers do not need it: the runtime ends a call with its request. */
  ...(!isCloudflare() && { signal: () => AbortSignal.timeout(10_000) }),
} as const

/**
 * Makes the field `store` of a configuration: the limiter sends its commands with a client of `@upstash/redis`, version 1.39 or later.
 * @param client a client, or a function of the environment that returns one. With several databases the function gets the URL and the token
 *   of each under the names without a suffix.
 * @throws {ConfigError} if an option of the client differs from {@link exactOptions}; with a function at the first request
 * @example
 * rateLimiter({ store: upstash((env) => Redis.fromEnv(env, exactOptions)), policies: [{ name: 'per-ip', limit: 100, window: '1m' }] })
 */
export function upstash(
  // biome-ignore lint/suspicious/noExplicitAny: fits the type of any environment
  client: UpstashClient | ((env: any) => UpstashClient),
): StoreClient {
  const connect = (made: UpstashClient) => {
    if (!checked(made).isConfigured) throw new StoreError('not-configured')
    return sender(made)
  }
  if (typeof client === 'function') return { connect: (env) => connect(client(env)) }
  checked(client)
  return { connect: () => connect(client) }
}

/** Sends each command once, with a client whose options are checked. */
function sender(client: UpstashClient): SendCommands {
  return async (commands) => {
    try {
      if (commands.length === 1) return [{ result: await run(client, commands[0]!) }]
      const pipeline = client.pipeline()
      for (const command of commands) run(pipeline, command)
      const answers = await pipeline.exec({ keepErrors: true })
      if (answers.length !== commands.length) throw new StoreError('bad-reply')
      return answers.map(({ result, error }) => (error ? { error: textOf(error) } : { result }))
    } catch (error) {
      const { name, message } = error as Error
      if (name === 'UpstashJSONParseError') throw new StoreError('bad-reply', 'not JSON')
      if (name !== 'UpstashError') throw error
      const answer: CommandAnswer = { error: textOf(message) }
      return commands.map(() => answer)
    }
  }
}

/** Runs `get key`, or `eval` or `evalsha` with the text, the number of keys, the keys and the arguments. */
function run(client: Scripts & Partial<Pick<UpstashClient, 'get'>>, command: Command): unknown {
  const [name, text, count, ...rest] = command as [string, string, number, ...string[]]
  if (name === 'get') return client.get!(text)
  return client[name as 'eval' | 'evalsha'](text, rest.slice(0, count), rest.slice(count))
}

/** The error text of Redis. The client appends the command, which contains keys. */
const textOf = (message: string) => message.split(', command was: ')[0]!

/** The state of a client of `@upstash/redis`. It is not a part of the client's interface. */
interface ClientState {
  opts?: { automaticDeserialization?: unknown }
  enableAutoPipelining?: unknown
  client?: {
    hasCredentials?: unknown
    readYourWrites?: unknown
    retry?: { attempts?: unknown }
    options?: { signal?: unknown }
  }
}

/** @throws {ConfigError} */
function checked(client: UpstashClient): { isConfigured: boolean } {
  if (typeof Object(client).evalsha !== 'function') {
    const got = `a value of type ${typeof client}`
    throw new ConfigError([{ path: 'store', expected: 'a client of @upstash/redis', got }])
  }
  const { opts, enableAutoPipelining, client: http } = client as unknown as ClientState
  const { retry, readYourWrites, options } = http ?? {}
  const problems: ConfigProblem[] = []
  const check = (name: string, got: unknown, isRight = got === false, value = 'false') => {
    if (isRight) return
    const path = `store: upstash(…), option ${name} of the client`
    problems.push({ path, expected: `${value}, as in exactOptions`, got: String(got) })
  }
  const attempts = retry?.attempts
  check('retry', `{ retries: ${attempts} }`, attempts === 0, '{ retries: 0 }')
  check('automaticDeserialization', opts?.automaticDeserialization ?? true)
  check('enableAutoPipelining', enableAutoPipelining)
  check('readYourWrites', readYourWrites)
  const signal = options?.signal
  const isEnded = typeof signal === 'function' || (signal === undefined && isCloudflare())
  check('signal', signal, isEnded, '() => AbortSignal.timeout(10_000)')
  if (problems.length > 0) throw new ConfigError(problems)
  return { isConfigured: http?.hasCredentials !== false }
}
