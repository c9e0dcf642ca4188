import { setTimeout as sleep } from 'node:timers/promises'
import { createClient, ErrorReply, RESP_TYPES } from 'redis'

/**
 * A reply of Redis. A Buffer is a bulk string; an error is a value, too. In the format `json` a string contains the
 * digits of an integer, since a number is not exact beyond 2^53. In the format `resp2` integers are numbers and a string
 * is a simple string.
 */
export type Reply = null | string | number | Buffer | ErrorReply | Reply[]

export type Format = 'json' | 'resp2'

/** One command: its name and arguments. */
export type Command = (string | Buffer)[]

/** Redis is unreachable, has disconnected or does not respond. The command may or may not have run. */
export class RedisDown extends Error {
  override name = 'RedisDown'
}

/** How long a request waits for Redis to reconnect, in ms. Bridges a short restart. */
const RECONNECT_WAIT_MS = 700

/** JSON needs the exact digits of integers. RESP2 needs simple strings to differ from bulk strings. */
const OPTIONS = {
  json: {
    typeMapping: {
      [RESP_TYPES.BLOB_STRING]: Buffer,
      [RESP_TYPES.SIMPLE_STRING]: Buffer,
      [RESP_TYPES.NUMBER]: String,
    },
  },
  resp2: { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } },
}

/**
 * One TCP connection to one Redis. All commands that are sent in one tick travel in one write, in order. A pipeline
 * therefore is one `send` for each command, and other commands cannot come between MULTI and EXEC of one tick.
 */
export class Connection {
  readonly url: string
  #client: Client
  #opened = false

  private constructor(url: string) {
    this.url = url
    this.#client = this.#createClient()
  }

  /** Connects, and from then on reconnects automatically every 100 ms. Rejects if the first connection fails. */
  static async open(url: string): Promise<Connection> {
    const connection = new Connection(url)
    await connection.#client.connect().catch((cause) => {
      throw new Error(`Redis at ${withoutPassword(url)} does not respond: ${describe(cause)}`, {
        cause,
      })
    })
    connection.#opened = true
    return connection
  }

  /** Resolves when commands can be sent. @throws RedisDown when Redis is not connected after 0.7 s. */
  async ready(): Promise<void> {
    const until = Date.now() + RECONNECT_WAIT_MS
    while (!this.#client.isReady) {
      if (Date.now() >= until) throw new RedisDown('Redis is not reachable')
      await sleep(20)
    }
  }

  /** Sends a command at once. Returns an error reply of Redis as a value. Rejects only with RedisDown. */
  async send(command: Command, format: Format = 'json'): Promise<Reply> {
    return settled(await this.sendRaw(command, format).catch((error) => error))
  }

  /** Like `send`, with one promise less. For pipelines, where promises are half of the cost. Pass the outcome to `settled`. */
  sendRaw(command: Command, format: Format): Promise<Reply> {
    return this.#client.sendCommand<Reply>(command, OPTIONS[format])
  }

  /** Sends MULTI, the commands and EXEC. Returns the reply to EXEC first, then the other replies. */
  transaction(commands: Command[]): Promise<Reply>[] {
    const before = [['MULTI'], ...commands].map((command) => this.send(command))
    return [this.send(['EXEC']), ...before]
  }

  /** Abandons all commands in flight and opens a new connection. For a Redis that does not respond. */
  restart(): void {
    const abandoned = this.#client
    this.#client = this.#createClient()
    abandoned.destroy()
    this.#client.connect().catch(() => {}) // fails only if `close` was called
  }

  close(): void {
    this.#client.destroy()
  }

  #createClient(): Client {
    const client = createRedis(this.url, () => (this.#opened ? 100 : false))
    // After a malformed reply, requests and replies no longer match, so a new connection is needed. For all other errors
    // the client itself has already rejected the commands in flight.
    client.on('error', () => client.isReady && this.restart())
    return client
  }
}

export type Client = ReturnType<typeof createRedis>

/** Creates a Redis client for the bridge. @param reconnectStrategy returns the ms to wait, or false to stop reconnecting */
export function createRedis(url: string, reconnectStrategy: () => number | false) {
  return createClient({
    url,
    RESP: 2,
    // Upstash does not queue commands while Redis is down, and does not repeat commands that may have run.
    disableOfflineQueue: true,
    // The library's timer for each command costs more than the command. The bridge sets one timer for each request.
    commandOptions: { timeout: 0 },
    socket: { connectTimeout: 2000, reconnectStrategy },
    // CLIENT SETINFO would appear in INFO commandstats.
    disableClientInfo: true,
    maintNotifications: 'disabled',
  })
}

/** The reply or Redis error that a command resulted in. @throws RedisDown for any other error */
export function settled(outcome: unknown): Reply {
  if (!(outcome instanceof Error) || outcome instanceof ErrorReply) return outcome as Reply
  if (outcome instanceof RedisDown) throw outcome
  throw new RedisDown(`Redis disconnected: ${describe(outcome)}`, { cause: outcome })
}

/** A URL for messages. */
export function withoutPassword(url: string): string {
  return url.replace(/\/\/[^@/]*@/, '//')
}

function describe(cause: unknown): string {
  return cause instanceof Error ? cause.message || cause.name : String(cause)
}
