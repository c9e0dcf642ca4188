/** The clients that an app may have for `sluice/redis`. */
import { Cluster as IoCluster, Redis as IoRedis } from 'ioredis'
import { createClientPool, createCluster, createSentinel, RedisClient as NodeRedis } from 'redis'
import { allParts } from '../../cli/replay/decide/script-parts.ts'
import { createUpstashStore } from '../../src/core/connection/upstash/upstash.ts'
import { type RedisClient, redis } from '../../src/stores/redis.ts'

export interface OpenClient {
  client: RedisClient
  isReady(): boolean
  close(): void
}

/** `createClient` makes the functions of all commands again for each URL, which takes 20 ms. */
const createClient = NodeRedis.factory({})

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

/** A pool of connections. It does not say whether they are open. */
export const POOL = 'a pool of redis'
export const poolClients: Record<string, (url: string) => OpenClient> = {
  [POOL](url) {
    const pool = createClientPool({ url, socket: { reconnectStrategy: 20 } }).on('error', () => {})
    pool.connect().catch(() => {})
    return { client: pool, isReady: () => pool.isOpen, close: () => pool.destroy() }
  },
}

const hostOf = (url: string) => {
  const { hostname, port } = new URL(url)
  return { host: hostname, port: Number(port) }
}

/** Clients of a Redis Cluster, by the URLs of its nodes. */
export const clusterClients: Record<string, (urls: string[]) => OpenClient> = {
  redis(urls) {
    const client = createCluster({ rootNodes: urls.map((url) => ({ url })) })
    client
      .on('error', () => {})
      .connect()
      .catch(() => {})
    return { client, isReady: () => client.isReady, close: () => client.destroy() }
  },
  ioredis(urls) {
    const client = new IoCluster(urls.map(hostOf)).on('error', () => {})
    return { client, isReady: () => client.status === 'ready', close: () => client.disconnect() }
  },
}

/** Clients of the master `main`, by the URLs of its Sentinels. */
export const sentinelClients: Record<string, (urls: string[]) => OpenClient> = {
  redis(urls) {
    const client = createSentinel({ name: 'main', sentinelRootNodes: urls.map(hostOf) })
    client
      .on('error', () => {})
      .connect()
      .catch(() => {})
    return { client, isReady: () => client.isReady, close: () => client.destroy() }
  },
  ioredis(urls) {
    const client = new IoRedis({ sentinels: urls.map(hostOf), name: 'main' }).on('error', () => {})
    return { client, isReady: () => client.status === 'ready', close: () => client.disconnect() }
  },
}

/** A store that sends its commands with a client. */
export const storeOf = (client: RedisClient, deadlineMs = 10_000, namespace?: string) =>
  createUpstashStore({ send: redis(client).connect({}), lua: allParts, deadlineMs, namespace })
