import { createClient } from 'redis'
import {
  type Bridge,
  type BridgeOptions,
  type RedisOptions,
  startBridge,
  startRedis,
} from '../src/index.ts'

// These tests flush, stop and starve their Redis: never somebody else's.
delete process.env.REDIS_URL

export type BridgeStack = {
  redis: { url: string }
  bridge: Bridge
  /** One raw HTTP request with the bridge's token; a body that is no text or bytes goes as JSON. */
  http(path: string, options?: HttpOptions): Promise<HttpAnswer>
  /** `POST /` with a command, answered `{ result }` or `{ error }`. */
  command(...command: unknown[]): Promise<{ result?: unknown; error?: string }>
  /** Redis asked directly. */
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

/** A Redis and a bridge of one's own, both on free ports. */
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
