import { setTimeout as sleep } from 'node:timers/promises'
import { createClient, ErrorReply, RESP_TYPES } from 'redis'

/**
 * What Redis answered. A Buffer is a string of any bytes, an error is a value like the others. Asked
 * for as `json`, a string is an integer's digits (a number would not be exact beyond 2^53); asked for
 * as `resp2`, integers are numbers and a string is a simple string.
 */
export type Reply = null | string | number | Buffer | ErrorReply | Reply[]

export type Format = 'json' | 'resp2'

/** One command: its name and arguments. */
export type Command = (string | Buffer)[]

/** Redis cannot be reached, went away or does not answer: it is unknown whether the command ran. */
export class RedisDown extends Error {
  override name = 'RedisDown'
}

/** How long a request waits for a Redis that is just restarting, in ms. */
const PATIENCE = 700

/** JSON wants integers' exact digits, RESP2 wants simple strings told from bulk strings. */
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
 * One TCP connection to one Redis. Whatever is sent in one tick travels in one write, in order, so a
 * pipeline is as many `send` as it has commands, and MULTI … EXEC of one tick cannot be interleaved.
 */
export class Connection {
  readonly url: string
  #client: Client
  #opened = false

  private constructor(url: string) {
    this.url = url
    this.#client = this.#createClient()
  }

  /** Connects once; from then on it reconnects by itself, every 100 ms. Rejects if Redis is not there. */
  static async open(url: string): Promise<Connection> {
    const connection = new Connection(url)
    await connection.#client.connect().catch((cause) => {
      throw new Error(`Redis at ${withoutPassword(url)} does not answer: ${describe(cause)}`, {
        cause,
      })
    })
    connection.#opened = true
    return connection
  }

  /** Resolves when commands can be sent. @throws RedisDown when Redis is still away after 0.7 s. */
  async ready(): Promise<void> {
    const until = Date.now() + PATIENCE
    while (!this.#client.isReady) {
      if (Date.now() >= until) throw new RedisDown('Redis is not reachable')
      await sleep(20)
    }
  }

  /** Sends at once. An error that Redis answers is a value. Rejects with RedisDown, and nothing else. */
  async send(command: Command, format: Format = 'json'): Promise<Reply> {
    return settled(await this.sendRaw(command, format).catch((error) => error))
  }

  /** The same for pipelines, where promises are half of the cost: what comes, or is thrown, wants `settled`. */
  sendRaw(command: Command, format: Format): Promise<Reply> {
    return this.#client.sendCommand<Reply>(command, OPTIONS[format])
  }

  /** Sends MULTI, the commands and EXEC. The replies: of EXEC first, then of those before it. */
  transaction(commands: Command[]): Promise<Reply>[] {
    const before = [['MULTI'], ...commands].map((command) => this.send(command))
    return [this.send(['EXEC']), ...before]
  }

  /** Gives up on all that is under way and connects anew: for a Redis that does not answer. */
  restart(): void {
    const given = this.#client
    this.#client = this.#createClient()
    given.destroy()
    this.#client.connect().catch(() => {}) // only when closed in the meantime
  }

  close(): void {
    this.#client.destroy()
  }

  #createClient(): Client {
    const client = createRedis(this.url, () => (this.#opened ? 100 : false))
    // A reply that cannot be read leaves requests and replies out of step: the only cure is a new
    // connection. In all other cases the client itself has told every request that waits.
    client.on('error', () => client.isReady && this.restart())
    return client
  }
}

export type Client = ReturnType<typeof createRedis>

/** A client as the bridge wants it. @param reconnectStrategy ms to wait, or false to give up */
export function createRedis(url: string, reconnectStrategy: () => number | false) {
  return createClient({
    url,
    RESP: 2,
    // Upstash neither queues for a Redis that is away nor repeats what may have been done.
    disableOfflineQueue: true,
    // The library's own timer per command costs more than the command; requests have one.
    commandOptions: { timeout: 0 },
    socket: { connectTimeout: 2000, reconnectStrategy },
    // Its introduction would show in INFO commandstats.
    disableClientInfo: true,
    maintNotifications: 'disabled',
  })
}

/** What a command came to: a reply or a Redis error as it is. @throws RedisDown for any other error */
export function settled(outcome: unknown): Reply {
  if (!(outcome instanceof Error) || outcome instanceof ErrorReply) return outcome as Reply
  if (outcome instanceof RedisDown) throw outcome
  throw new RedisDown(`Redis went away: ${describe(outcome)}`, { cause: outcome })
}

/** For people to see. */
export function withoutPassword(url: string): string {
  return url.replace(/\/\/[^@/]*@/, '//')
}

function describe(cause: unknown): string {
  return cause instanceof Error ? cause.message || cause.name : String(cause)
}
