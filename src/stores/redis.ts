/** `sluice/redis`: any Redis or Valkey through the client of the app: one server, Sentinels or a Cluster. */
import {
  type Command,
  type CommandAnswer,
  LATE_MS,
  type StoreClient,
} from '../core/base/commands.ts'
import { sha1 } from '../core/base/digest.ts'
import { ConfigError, NOT_SENT, StoreError } from '../core/base/errors.ts'
import { type Soon, whenKnown } from '../core/base/when-known.ts'
import { slots } from './cluster/cluster.ts'

export type { StoreClient } from '../core/base/commands.ts'

/**
 * A client of the package `redis` (`createClient`, `createClientPool`, `createSentinel`, `createCluster`) or of `ioredis` (`Redis`,
 * `Cluster`), version 5 or later.
 */
export interface RedisClient {
  sendCommand(...args: never[]): unknown
}

/**
 * Makes the field `store` of a configuration: the limiter sends its commands with the app's client of `redis` or `ioredis`, whose options
 * may be any. It neither connects nor closes the client. With a client of a Redis Cluster, `cluster()` is implied. A call is sent once: not
 * again after a lost connection, and not after its deadline.
 * @throws {ConfigError} if the value is no such client
 * @example
 * const client = await createClient({ url: process.env.REDIS_URL }).connect()
 * rateLimiter({ store: redis(client), clientAddress: 'socket', policies: [{ name: 'per-ip', limit: 100, window: '1m' }] })
 */
export function redis(client: RedisClient): StoreClient {
  const known = Object(client) as Partial<IoRedis & NodeRedis>
  if (typeof known.sendCommand !== 'function') {
    const expected = 'a client of the package redis or ioredis'
    throw new ConfigError([{ path: 'store', expected, got: `a value of type ${typeof client}` }])
  }
  const isIoRedis = typeof known.call === 'function'
  const isCluster = isIoRedis ? known.isCluster : typeof known.nodeClient === 'function'
  const send = isIoRedis ? ioRedis(known as IoRedis) : nodeRedis(known as NodeRedis)
  const isReady = () => (isIoRedis ? known.status === 'ready' : known.isReady !== false)
  let wasReady = false
  /** The hashes of texts without the flag, by those with it. */
  const hashes = new Map<string, string>()
  /** Takes the flag of Upstash from a script: Redis refuses it. */
  function withoutFlag(command: Command): Soon<string[]> {
    const [name, script, ...rest] = command.map(String)
    if (name === 'evalsha') return [name, hashes.get(script!) ?? script!, ...rest]
    const text = script!.replace(/^#!lua [^\n]*\n/, '')
    const ready = [name!, text, ...rest]
    if (text === script) return ready
    return Promise.all([script!, text].map(sha1)).then(([flagged, plain]) => {
      hashes.set(flagged!, plain!)
      return ready
    })
  }
  return {
    connect: () => async (commands, _, deadlineMs) => {
      // The queue of a client without a connection would only grow. Before its first connection, a call may wait until its deadline.
      if (isReady()) wasReady = true
      else if (wasReady) throw new StoreError('unreachable', NOT_SENT)
      return new Promise((resolve) => {
        const answers: (CommandAnswer | StoreError)[] = []
        let missing = commands.length
        const until = new Until(deadlineMs, () =>
          resolve(commands.map((_, index) => answers[index] ?? new StoreError('timeout'))),
        )
        commands.forEach(async (command, index) => {
          try {
            const result = await whenKnown(withoutFlag(command), (one) => send(one, until))
            answers[index] = { result }
          } catch (error) {
            answers[index] = answerOf(error)
          }
          missing -= 1
          if (missing > 0) return
          until.end()
          resolve(answers)
        })
      })
    },
    ...(isCluster && { layers: slots }),
  }
}

/** When a call may no longer leave the queue of the client. It is what clients need of an `AbortSignal`, which costs Node more than the call. */
class Until {
  aborted = false
  #listeners: (() => void)[] = []
  #timer: ReturnType<typeof setTimeout>

  /** @param late called when no answer is of use */
  constructor(ms: number, late: () => void) {
    this.#timer = setTimeout(() => {
      this.aborted = true
      for (const listener of this.#listeners.splice(0)) listener()
      this.#timer = setTimeout(late, LATE_MS)
    }, ms)
  }

  addEventListener(_: string, listener: () => void): void {
    this.#listeners.push(listener)
  }

  removeEventListener(_: string, listener: () => void): void {
    this.#listeners = this.#listeners.filter((one) => one !== listener)
  }

  end(): void {
    clearTimeout(this.#timer)
  }
}

/** Sends one command once. @param until when it may no longer leave the queue of the client */
type Send = (command: string[], until: Until) => Promise<unknown>

/** The clients of `redis`. Their methods differ in what precedes the command. */
interface NodeRedis {
  isReady?: boolean
  nodeClient?: unknown
  getSentinelNode?: unknown
  sendCommand(...args: unknown[]): Promise<unknown>
}

function nodeRedis(client: NodeRedis): Send {
  // Replies are texts, whatever the app has set. A call has its own deadline, and a timeout of the client would cost a signal.
  const options = { typeMapping: {}, timeout: 0 }
  if (typeof client.nodeClient === 'function') {
    return async function inCluster(command, abortSignal): Promise<unknown> {
      const key = command[command[0] === 'get' ? 1 : 3]
      try {
        return await client.sendCommand(key, false, command, { ...options, abortSignal })
      } catch (error) {
        // The keys of a slot that moves are on two nodes, and nothing has run.
        if (!/^TRYAGAIN\b/.test((error as Error).message)) throw error
        await new Promise((resolve) => setTimeout(resolve, TRY_AGAIN_MS))
        return inCluster(command, abortSignal)
      }
    }
  }
  if (typeof client.getSentinelNode !== 'function') {
    return (command, abortSignal) => client.sendCommand(command, { ...options, abortSignal })
  }
  return async (command, until) => {
    const abortSignal = onceUntil(until)
    try {
      return await client.sendCommand(false, command, { ...options, abortSignal })
    } catch (error) {
      throw (error as Error).message === ABORTED ? new StoreError('unreachable') : error
    }
  }
}

/** How long a client of `redis` waits while the keys of a call are on two nodes, ms. One of `ioredis` waits by itself. */
const TRY_AGAIN_MS = 20

/** The error of a call that left the queue of a client of `redis` because of its signal. */
const ABORTED = 'The command was aborted'

/** A client of Sentinels sends a command again after a lost connection. Each time it first asks whether the signal is aborted. */
function onceUntil(until: Until) {
  let isSent = false
  return {
    get aborted() {
      const isOver = isSent || until.aborted
      isSent = true
      return isOver
    },
    addEventListener: until.addEventListener.bind(until),
    removeEventListener: until.removeEventListener.bind(until),
  }
}

interface IoRedis {
  status?: string
  isCluster?: boolean
  call(...command: string[]): Promise<unknown>
  sendCommand(command: IoCommand): unknown
}

interface IoCommand {
  /** What the client writes to a connection, each time that it sends the command. */
  toWritable(socket: { destroyed?: boolean }): string | Uint8Array
}

/** A command without an effect. */
const PING = '*1\r\n$4\r\nPING\r\n'

/**
 * A client of `ioredis` sends a command again after a lost connection, and keeps it in a queue without a limit of time. Such a command is
 * replaced when it is written. A redirected one is not: its connection has answered, and is open.
 */
function ioRedis(client: IoRedis): Send {
  let watch: (command: IoCommand) => void
  const watched: IoRedis = Object.create(client, {
    isPipeline: { value: true }, // no automatic pipeline, which makes commands of its own
    sendCommand: {
      value(command: IoCommand) {
        watch(command)
        return client.sendCommand(command)
      },
    },
  })
  return async (args, until) => {
    let socket: { destroyed?: boolean } | undefined
    let failure: StoreError | undefined
    watch = (command) => {
      const write = command.toWritable.bind(command)
      command.toWritable = (target) => {
        if (socket?.destroyed) failure = new StoreError('unreachable')
        else if (until.aborted) failure = new StoreError('timeout', NOT_SENT)
        if (failure) return PING
        socket = target
        return write(target)
      }
    }
    const result = await watched.call(...args)
    if (failure) throw failure
    return result
  }
}

/** The answer of Redis begins with a code in capitals. Other errors are those of a connection, and the call may have been charged. */
function answerOf(error: unknown): CommandAnswer | StoreError {
  if (error instanceof StoreError) return error
  const { message = '', code } = Object(error) as Partial<Error & { code: unknown }>
  if (/^[A-Z]{2,}\b/.test(message)) return { error: message }
  if (message === ABORTED) return new StoreError('timeout', NOT_SENT)
  const isClosed = message === 'The client is closed'
  return new StoreError('unreachable', isClosed ? 'the client is not connected' : `${code ?? ''}`)
}
