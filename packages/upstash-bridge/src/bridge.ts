import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Bill, Database } from './database.ts'
import { createHandler } from './http.ts'
import { Streams } from './streams.ts'

export type BridgeOptions = {
  /** The URL of one Redis, which clients select by `token`; or several, each with its own token. */
  redis: string | { url: string; token: string }[]
  /** Port to listen on. Defaults to 0, which selects a free port. */
  port?: number
  /** Loopback only, since the token gives access to the whole database. Defaults to '127.0.0.1'. */
  host?: '127.0.0.1'
  /** Additional values of the Host header to accept, without port. Loopback names are always accepted. Defaults to none. */
  allowHosts?: string[]
  /** Token of the database. Ignored when `redis` lists tokens. Defaults to 'dev'. */
  token?: string
  /** Latency in ms added to each HTTP request, to simulate a distant database. Defaults to 0. */
  rtt?: number
  /**
   * Refuses keys that a script or function with `allow-key-locking` did not declare, and counts the commands inside
   * scripts. With `false` scripts run unchanged, to measure the time of Redis alone. Defaults to true.
   */
  checkKeys?: boolean
  /**
   * Maximum commands per second of each database; further commands wait. Commands inside scripts count if `checkKeys` is
   * on. Defaults to no maximum.
   */
  maxCommands?: number | undefined
  /** Time in ms after which a Redis that does not respond counts as down. Defaults to 10,000. */
  timeout?: number
  /**
   * The time in ms since the epoch, for tests that move it. The bridge passes it to scripts that take the time as their
   * first argument, such as that of Sluice, wherever this argument is empty. Other commands, and the TTL of keys, follow
   * the clock of Redis. Defaults to no change: such a script reads the clock of Redis.
   */
  clock?: () => number
}

export type Bridge = {
  url: string
  /** The token, or the first of several. */
  token: string
  port: number
  /** Returns the bill so far for each token. */
  stats(): Record<string, Bill>
  /** Waits for requests in flight, ends the streams, then closes the port and the connections to Redis. */
  close(): Promise<void>
}

/**
 * Serves the Upstash REST API from your own Redis. README.md lists the differences from Upstash.
 *
 * @example
 * const bridge = await startBridge({ redis: 'redis://127.0.0.1:6379' })
 * const redis = new Redis({ url: bridge.url, token: bridge.token })
 *
 * @throws Error when Redis does not respond or the port is in use.
 */
export async function startBridge(options: BridgeOptions): Promise<Bridge> {
  const { port = 0, host = '127.0.0.1', token = 'dev', rtt = 0, allowHosts = [] } = options
  const { checkKeys = true, timeout = 10_000, maxCommands, clock } = options
  const targets =
    typeof options.redis === 'string' ? [{ url: options.redis, token }] : options.redis
  if (targets.some((target) => !target.token))
    throw new Error('token: expected at least one character')
  const databases = new Map<string, Database>()
  const streams = new Streams()
  // A URL may contain a whole command.
  const limits = { maxHeaderSize: 128 * 1024 }
  const server = createServer(limits, createHandler({ databases, streams, rtt, allowHosts }))
  // Longer than clients keep an idle connection, so that no client writes to a connection that the bridge has closed.
  server.keepAliveTimeout = 120_000
  const closeDatabases = () => {
    for (const database of databases.values()) database.close()
  }
  try {
    for (const target of targets) {
      const settings = { url: target.url, checkKeys, timeout, maxCommands, clock }
      databases.set(target.token, await Database.open(settings))
    }
    await listen(server, port, host)
  } catch (error) {
    closeDatabases()
    throw error
  }
  const { port: bound } = server.address() as AddressInfo
  return {
    url: `http://${host}:${bound}`,
    token: targets[0]?.token ?? token,
    port: bound,
    stats: () => Object.fromEntries([...databases].map(([name, { bill }]) => [name, { ...bill }])),
    close: async () => {
      streams.close()
      await closeServer(server)
      closeDatabases()
    },
  }
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const taken = cause.code === 'EADDRINUSE'
      reject(taken ? new Error(`Port ${port} is in use: choose another port`, { cause }) : cause)
    })
    server.listen(port, host, resolve)
  })
}

/** Waits up to 3 s for requests in flight, and closes idle connections. */
async function closeServer(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve))
  const idle = setInterval(() => server.closeIdleConnections(), 20)
  const late = setTimeout(() => server.closeAllConnections(), 3000)
  await closed
  clearInterval(idle)
  clearTimeout(late)
}
