import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Bill, Database } from './database.ts'
import { createHandler } from './http.ts'
import { Streams } from './streams.ts'

export type BridgeOptions = {
  /** `redis://host:port`, selected by `token`; or several, each selected by its own token. */
  redis: string | { url: string; token: string }[]
  /** Default 0: a free port. */
  port?: number
  /** Loopback only: the token gives access to the whole database. Default '127.0.0.1'. */
  host?: '127.0.0.1'
  /** Host names, without port, to answer to besides those of loopback. Default none. */
  allowHosts?: string[]
  /** Default 'dev'. Ignored when `redis` lists tokens. */
  token?: string
  /** Milliseconds added to each HTTP request, to simulate a distant database. Default 0. */
  rtt?: number
  /**
   * Refuse keys that were not declared to a script or function with `allow-key-locking`, and count the
   * commands inside scripts. `false` runs scripts bare, to measure Redis's own time. Default true.
   */
  checkKeys?: boolean
  /**
   * The most commands that each database takes in a second, those inside scripts too unless `checkKeys` is off; the others wait. By
   * default as many as come.
   */
  maxCommands?: number | undefined
  /** Milliseconds after which a Redis that does not answer counts as down. Default 10,000. */
  timeout?: number
}

export type Bridge = {
  url: string
  /** The (first) token. */
  token: string
  port: number
  /** What Upstash would have billed so far, by token. */
  stats(): Record<string, Bill>
  /** Answers requests in flight, ends the streams, then releases the port and Redis. */
  close(): Promise<void>
}

/**
 * Serves Upstash's REST API in front of your own Redis. README.md lists the differences from Upstash.
 *
 * @example
 * const bridge = await startBridge({ redis: 'redis://127.0.0.1:6379' })
 * const redis = new Redis({ url: bridge.url, token: bridge.token })
 *
 * @throws Error when Redis does not answer or the port is taken.
 */
export async function startBridge(options: BridgeOptions): Promise<Bridge> {
  const { port = 0, host = '127.0.0.1', token = 'dev', rtt = 0, allowHosts = [] } = options
  const { checkKeys = true, timeout = 10_000, maxCommands } = options
  const targets =
    typeof options.redis === 'string' ? [{ url: options.redis, token }] : options.redis
  if (targets.some((target) => !target.token))
    throw new Error('token: expected at least one character')
  const databases = new Map<string, Database>()
  const streams = new Streams()
  // A path may hold a whole command.
  const limits = { maxHeaderSize: 128 * 1024 }
  const server = createServer(limits, createHandler({ databases, streams, rtt, allowHosts }))
  // Longer than clients keep an idle connection, so that they do not write into a closed one.
  server.keepAliveTimeout = 120_000
  const letGo = () => {
    for (const database of databases.values()) database.close()
  }
  try {
    for (const target of targets) {
      const settings = { url: target.url, checkKeys, timeout, maxCommands }
      databases.set(target.token, await Database.open(settings))
    }
    await listen(server, port, host)
  } catch (error) {
    letGo()
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
      letGo()
    },
  }
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const taken = cause.code === 'EADDRINUSE'
      reject(taken ? new Error(`Port ${port} is taken: choose another`, { cause }) : cause)
    })
    server.listen(port, host, resolve)
  })
}

/** Lets requests that are under way finish, for up to 3 s, and hangs up on clients that keep a connection. */
async function closeServer(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve))
  const idle = setInterval(() => server.closeIdleConnections(), 20)
  const late = setTimeout(() => server.closeAllConnections(), 3000)
  await closed
  clearInterval(idle)
  clearTimeout(late)
}
