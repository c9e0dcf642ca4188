import { newClient } from '../src/client.ts'
import {
  type Bridge,
  type BridgeOptions,
  type RedisOptions,
  type RedisTarget,
  startBridge,
  startRedis,
} from '../src/index.ts'
import { borrowCluster, type Direct, type TestRedis } from './cluster.ts'

// These tests flush and stop their Redis, so they never use REDIS_URL.
delete process.env.REDIS_URL

/** The tests of the bridge run twice: against one server, and against a cluster (the project `cluster` of vitest.config.ts). */
export const CLUSTER = process.env.BRIDGE_TEST_CLUSTER === '1'

/** The error of a command, script or transaction with keys in several slots. */
export const CROSSSLOT = "CROSSSLOT Keys in request don't hash to the same slot"

export type BridgeStack = {
  /** The Redis of the bridge, for a second bridge. */
  target: RedisTarget
  bridge: Bridge
  /** Sends one HTTP request with the bridge's token. A body that is neither text nor bytes is sent as JSON. */
  http(path: string, options?: HttpOptions): Promise<HttpAnswer>
  /** Sends a command with `POST /`. Returns `{ result }` or `{ error }`. */
  command(...command: unknown[]): Promise<{ result?: unknown; error?: string }>
  /** Sends a command to Redis without the bridge. */
  direct: Direct
  /** Stops Redis, and not the bridge. */
  stopRedis(): Promise<void>
  stop(): Promise<void>
}

export type HttpOptions = {
  method?: string
  body?: unknown
  headers?: Record<string, string>
  token?: string | null
}

export type HttpAnswer = { status: number; headers: Headers; text: string; json: unknown }

type StackOptions = Partial<BridgeOptions> & { redisOptions?: RedisOptions }

/** Starts a Redis, or takes a cluster, and starts a bridge on a free port. */
export async function startBridgeStack(options: StackOptions = {}): Promise<BridgeStack> {
  const { redisOptions, ...bridgeOptions } = options
  const redis = CLUSTER ? await borrowCluster() : await startOne(redisOptions)
  const bridge = await startBridge({ ...redis.target, ...bridgeOptions }).catch(async (error) => {
    await redis.stop()
    throw error
  })
  const http = (path: string, http: HttpOptions = {}) => request(bridge, path, http)
  return {
    target: redis.target,
    bridge,
    http,
    command: async (...body) =>
      (await http('/', { method: 'POST', body })).json as { result?: unknown; error?: string },
    direct: redis.direct,
    stopRedis: redis.stop,
    stop: async () => {
      await bridge.close()
      await redis.stop()
    },
  }
}

async function startOne(options: RedisOptions | undefined): Promise<TestRedis> {
  const redis = await startRedis(options)
  const client = newClient({ url: redis.url })
  client.on('error', () => {})
  await client.connect()
  return {
    target: { redis: redis.url },
    direct: (...command) => client.sendCommand(command),
    stop: async () => {
      if (client.isOpen) client.destroy()
      await redis.stop()
    },
  }
}

async function request(bridge: Bridge, path: string, options: HttpOptions): Promise<HttpAnswer> {
  const { method = 'GET', body, headers = {}, token = bridge.token } = options
  const raw = typeof body === 'string' || body instanceof Uint8Array
  const response = await fetch(bridge.url + path, {
    method,
    headers: { ...(token !== null && { authorization: `Bearer ${token}` }), ...headers },
    ...(body !== undefined && { body: raw ? (body as string) : JSON.stringify(body) }),
  })
  const text = await response.text()
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    json = undefined
  }
  return { status: response.status, headers: response.headers, text, json }
}

/** The message of an error without the name of its script. Valkey 9 leaves the name out; the bridge has it. */
export const withoutName = (message: string) =>
  message.replace(/ script: [\w-]+, on @/, ' script: on @')
