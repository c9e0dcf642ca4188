import type { Backend } from './backend.ts'
import { Cluster } from './cluster.ts'
import { type Address, Connection } from './connection.ts'
import { Sentinel } from './sentinel.ts'

/** The Redis of the bridge. Give one of `redis`, `cluster` and `sentinel`. */
export type RedisTarget = {
  /** The URL of one Redis, which clients select by `token`; or several, each with its own token. */
  redis?: string | { url: string; token: string }[]
  /**
   * URLs of one or more nodes of a Redis Cluster; the bridge finds the others. The scheme and the credentials of the
   * first URL apply to all nodes.
   */
  cluster?: string[]
  /**
   * The name of a master, and the URLs of the sentinels that watch it. The scheme and the credentials of the first URL
   * apply to the master and its replicas. The sentinels themselves need no password.
   */
  sentinel?: { name: string; urls: string[] }
  /** Certificate authorities in PEM that sign the certificates of Redis, for `rediss:` URLs. Defaults to those of Node. */
  redisCa?: string | Buffer | undefined
}

/** Connects to each database of the target. @throws Error when it does not respond. */
export async function openBackends(
  { redis, cluster, sentinel, redisCa }: RedisTarget,
  token: string,
  timeout: number,
): Promise<{ token: string; backend: Backend }[]> {
  const address = (url: string): Address => ({ url, tls: redisCa ? { ca: redisCa } : undefined })
  if ([redis, cluster, sentinel].filter((target) => target !== undefined).length !== 1) {
    throw new Error('expected exactly one of redis, cluster and sentinel')
  }
  if (cluster) return [{ token, backend: await Cluster.open(cluster.map(address), timeout) }]
  if (sentinel) {
    const [, credentials = ''] = /^\w+:\/\/([^@/]*@)/.exec(sentinel.urls[0] ?? '') ?? []
    const sentinels = sentinel.urls.map((url) => address(url.replace(credentials, '')))
    const options = { name: sentinel.name, sentinels, credentials, timeout }
    return [{ token, backend: await Sentinel.open(options) }]
  }
  const servers = typeof redis === 'string' ? [{ url: redis, token }] : (redis ?? [])
  const opened: { token: string; backend: Backend }[] = []
  try {
    for (const server of servers) {
      opened.push({ token: server.token, backend: await Connection.open(address(server.url)) })
    }
    return opened
  } catch (error) {
    for (const { backend } of opened) backend.close()
    throw error
  }
}
