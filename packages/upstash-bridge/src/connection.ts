import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ConnectionOptions } from 'node:tls'
import { ClientOfflineError, ErrorReply, RESP_TYPES } from 'redis'
import { newClient } from './client.ts'
import { limitRights, namesUser } from './rights.ts'

/**
 * A reply of Redis. A Buffer is a bulk string; an error is a value, too. In the format `json` a string contains the
 * digits of an integer, since a number is not exact beyond 2^53. In the format `resp2` integers are numbers and a string
 * is a simple string.
 */
export type Reply = null | string | number | Buffer | ErrorReply | Reply[]

export type Format = 'json' | 'resp2'

/** One command: its name and arguments. */
export type Command = (string | Buffer)[]

/** One server: its URL, and how to check its certificate if the scheme is `rediss`. */
export type Address = {
  url: string
  tls?: Pick<ConnectionOptions, 'ca' | 'servername'> | undefined
}

/** Redis is unreachable, has disconnected or does not respond. The command may or may not have run. */
export class RedisDown extends Error {
  override name = 'RedisDown'
}

/** How long a request waits for Redis to reconnect, in ms. Bridges a short restart. */
const RECONNECT_WAIT_MS = 700
/** Pause before the next attempt to connect, and to end a script, in ms. */
const RECONNECT_MS = 100

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
  readonly address: Address
  #client: Client
  #reconnects: boolean
  readonly #limits: boolean
  #limiting: Promise<void> = Promise.resolve()
  /** False until the connection has its limited rights: any command may be a script. */
  #maySend = false
  /** True while an abandoned script may keep Redis busy. */
  #endsScripts = false

  private constructor(address: Address, reconnects: boolean, limits: boolean) {
    this.address = address
    this.#reconnects = reconnects
    this.#limits = limits && !namesUser(address.url)
    this.#client = this.#createClient()
  }

  /** Connects, and from then on reconnects automatically every 100 ms. Rejects if the first connection fails. */
  static async open(address: Address): Promise<Connection> {
    const connection = new Connection(address, false, true)
    const url = withoutPassword(address.url)
    await connection.#client.connect().catch((cause) => {
      throw new Error(`Redis at ${url} does not respond: ${describe(cause)}`, { cause })
    })
    await connection.#limiting.catch((cause) => {
      connection.close()
      throw new Error(`Redis at ${url}: ${describe(cause)}`, { cause })
    })
    connection.#reconnects = true
    return connection
  }

  /**
   * Returns at once and connects in the background, every 100 ms until it succeeds.
   * @param limits false for a server that runs no scripts
   */
  static start(address: Address, limits = true): Connection {
    const connection = new Connection(address, true, limits)
    connection.#client.connect().catch(() => {}) // fails only if `close` was called
    return connection
  }

  /** Resolves when commands can be sent. @throws RedisDown when Redis is not connected after 0.7 s. */
  async ready(): Promise<void> {
    const until = Date.now() + RECONNECT_WAIT_MS
    while (!this.isUp()) {
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
    if (!this.#maySend) return Promise.reject(new ClientOfflineError())
    return this.#client.sendCommand<Reply>(command, OPTIONS[format])
  }

  /** One server either runs a command, or it may have run it. */
  again(): undefined {}

  transaction(commands: Command[], scripts: Buffer[]): Promise<Reply[]> {
    return this.sendTransaction(commands, scripts, false)
  }

  /** @param asking sends ASKING first, to a node of a cluster that imports the slot */
  sendTransaction(commands: Command[], scripts: Buffer[], asking: boolean): Promise<Reply[]> {
    for (const text of scripts) this.send(['SCRIPT', 'LOAD', text]).catch(() => {}) // MULTI rejects, too
    if (asking) this.send(['ASKING']).catch(() => {})
    const queued = [['MULTI'], ...commands].map((command) => this.send(command))
    return Promise.all([...queued, this.send(['EXEC'])]).then((all) => [all.pop()!, ...all])
  }

  /**
   * Abandons all commands in flight and opens a new connection. For a Redis that does not respond.
   * @param endsScripts ends the script that keeps Redis busy, too
   */
  restart(endsScripts = false): void {
    const abandoned = this.#client
    this.#client = this.#createClient()
    this.#endsScripts ||= endsScripts
    abandoned.destroy()
    this.#client.connect().catch(() => {}) // fails only if `close` was called
  }

  giveUp(endsScripts: boolean): void {
    this.restart(endsScripts)
  }

  addresses(): Address[] {
    return [this.address]
  }

  isUp(): boolean {
    return this.#client.isReady && this.#maySend
  }

  close(): void {
    this.#client.destroy()
  }

  #createClient(): Client {
    const client = createRedis(this.address, () => (this.#reconnects ? RECONNECT_MS : false))
    // After a malformed reply, requests and replies no longer match, so a new connection is needed. For all other errors
    // the client itself has already rejected the commands in flight.
    client.on('error', () => client.isReady && this.restart())
    this.#maySend = !this.#limits
    client.on('ready', () => {
      if (this.#limits) this.#limit(client)
      if (this.#endsScripts) this.#endScripts(client)
    })
    return client
  }

  #limit(client: Client): void {
    this.#maySend = false
    this.#limiting = limitRights(client).then(() => {
      this.#maySend = client === this.#client
    })
    this.#limiting.catch(async () => {
      await sleep(RECONNECT_MS)
      if (client === this.#client && client.isReady && this.#reconnects) this.restart()
    })
  }

  /** Ends the abandoned scripts: after each one, Redis runs the next one of the same pipeline. */
  async #endScripts(client: Client): Promise<void> {
    const kill = (kind: string) => client.sendCommand([kind, 'KILL']).catch((error) => error)
    while (this.#endsScripts && client === this.#client) {
      const replies = await Promise.all([kill('SCRIPT'), kill('FUNCTION')])
      if (replies.every((reply) => reply instanceof ErrorReply)) this.#endsScripts = false
      await sleep(RECONNECT_MS)
    }
  }
}

export type Client = ReturnType<typeof createRedis>

/** Creates a Redis client. @param reconnectStrategy returns the ms to wait, or false to stop reconnecting */
export function createRedis(
  { url, tls }: Address,
  reconnectStrategy: (retries: number) => number | false,
) {
  return newClient({
    url,
    // Upstash does not queue commands while Redis is down, and does not repeat commands that may have run.
    disableOfflineQueue: true,
    // The library's timer for each command costs more than the command. The bridge sets one timer for each request.
    commandOptions: { timeout: 0 },
    socket: { connectTimeout: 2000, reconnectStrategy, ...JOINED_WRITES, ...tls },
    // CLIENT SETINFO would appear in INFO commandstats.
    disableClientInfo: true,
    maintNotifications: 'disabled',
  })
}

type Chunk = { chunk: string | Buffer }

/**
 * Options of a socket that sends the commands of a pipeline as one chunk. The package `redis` writes a chunk for each
 * command, and a system call with a hundred chunks costs more than the commands. Sockets with TLS ignore the option.
 */
const JOINED_WRITES = {
  writev(this: Socket, chunks: Chunk[], done: (error?: Error | null) => void): void {
    const parts = chunks.map(({ chunk }) => chunk)
    if (parts.every((part) => typeof part === 'string')) {
      this._write(parts.join(''), 'utf8', done)
    } else {
      const bytes = parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part))
      this._write(Buffer.concat(bytes), 'buffer' as BufferEncoding, done)
    }
  },
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
