/** The clients that an app may have for `sluice/redis`. */
import { Redis as IoRedis } from 'ioredis'
import { createClient } from 'redis'
import { allParts } from '../../cli/replay/decide/script-parts.ts'
import { createUpstashStore } from '../../src/core/connection/upstash/upstash.ts'
import { type RedisClient, redis } from '../../src/stores/redis.ts'

export interface OpenClient {
  client: RedisClient
  isReady(): boolean
  close(): void
}

/** Clients with the options that they have by default, apart from a fast second connection. They begin to connect at once. */
export const redisClients: Record<string, (url: string) => OpenClient> = {
  redis(url) {
    const client = createClient({ url, socket: { reconnectStrategy: 20 } }).on('error', () => {})
    client.connect().catch(() => {})
    return { client, isReady: () => client.isReady, close: () => client.destroy() }
  },
  ioredis(url) {
    const client = new IoRedis(url, { retryStrategy: () => 20 }).on('error', () => {})
    return { client, isReady: () => client.status === 'ready', close: () => client.disconnect() }
  },
}

/** A store that sends its commands with a client. */
export const storeOf = (client: RedisClient, deadlineMs = 10_000) =>
  createUpstashStore({ send: redis(client).connect({}), lua: allParts, deadlineMs })
