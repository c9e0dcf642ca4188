import { createClient } from 'redis'
import {
  type Bridge,
  type BridgeOptions,
  type RedisOptions,
  startBridge,
  startRedis,
} from '../src/index.ts'

// These tests flush and stop their Redis, so they never use REDIS_URL.
delete process.env.REDIS_URL

export type BridgeStack = {
  redis: { url: string }
  bridge: Bridge
  /** Sends one HTTP request with the bridge's token. A body that is neither text nor bytes is sent as JSON. */
  http(path: string, options?: HttpOptions): Promise<HttpAnswer>
  /** Sends a command with `POST /`. Returns `{ result }` or `{ error }`. */
  command(...command: unknown[]): Promise<{ result?: unknown; error?: string }>
  /** Sends a command to Redis without the bridge. */
  direct(...command: string[]): Promise<unknown>
  stop(): Promise<void>
}

export type HttpOptions = {
  method?: string
  body?: unknown
  headers?: Record<string, string>
  token?: string | null
}

export type HttpAnswer = { status: number; headers: Headers; text: string; json: unknown }

/** Starts a Redis and a bridge, both on free ports. */
export async function startBridgeStack(
  options: Partial<BridgeOptions> & { redisOptions?: RedisOptions } = {},
): Promise<BridgeStack> {
  const { redisOptions, ...bridgeOptions } = options
  const redis = await startRedis(redisOptions)
  const bridge = await startBridge({ redis: redis.url, ...bridgeOptions })
  const client = createClient({ url: redis.url, RESP: 2 })
  client.on('error', () => {})
  await client.connect()
  const http = (path: string, http: HttpOptions = {}) => request(bridge, path, http)
  return {
    redis,
    bridge,
    http,
    command: async (...body) =>
      (await http('/', { method: 'POST', body })).json as { result?: unknown; error?: string },
    direct: (...command) => client.sendCommand(command),
    stop: async () => {
      client.destroy()
      await bridge.close()
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
