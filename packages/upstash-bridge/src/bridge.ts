import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { Admission } from './admission.ts'
import { type Bill, Database } from './database.ts'
import { createHandler, type Limits } from './http.ts'
import { isLoopback } from './origin.ts'
import { Streams } from './streams.ts'
import { openBackends, type RedisTarget } from './targets.ts'
import { type Token, Tokens } from './tokens.ts'

export type BridgeOptions = RedisTarget & {
  /** Port to listen on. Defaults to 0, which selects a free port. */
  port?: number
  /** Address to listen on. Any other than a loopback address needs a `token` or `tokens`. Defaults to '127.0.0.1'. */
  host?: string
  /** Additional values of the Host header to accept, without port. Loopback names are always accepted. Defaults to none. */
  allowHosts?: string[]
  /** Certificate chain and key in PEM, to serve HTTPS. Defaults to HTTP. */
  tls?: { cert: string | Buffer; key: string | Buffer } | undefined
  /** Token of the database. Ignored when `redis` lists tokens. Defaults to 'dev'. */
  token?: string
  /** Several tokens of the database, instead of `token`. The bill is that of the first one. */
  tokens?: Token[]
  /** A read-only token may run EVAL_RO, EVALSHA_RO and FCALL_RO, which can keep Redis busy. Defaults to false. */
  readOnlyScripts?: boolean
  /** Maximum requests that use Redis at the same time; further ones wait. Defaults to 1000. */
  maxRunning?: number
  /** Maximum requests that wait; beyond it the status is 429, with Retry-After. Defaults to 5000. */
  maxWaiting?: number
  /** Maximum size of a request body in bytes. Defaults to 10 MB, as at Upstash. */
  maxBody?: number
  /** Maximum commands in a pipeline or transaction. Defaults to no maximum. */
  maxPipeline?: number
  /** Maximum size of a response in bytes. Defaults to 16 MB, enough for a value of 10 MB in base64. */
  maxReply?: number
  /** Receives a line of JSON for each request, without keys and arguments. Defaults to no log. */
  log?: (line: string) => void
  /** Maximum time in ms that `close` waits for requests in flight. Defaults to 3000. */
  grace?: number
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
  /**
   * Time in ms after which a request fails if Redis has not responded. On a cluster or with sentinels a request waits that
   * long for a failover. Defaults to 10,000.
   */
  timeout?: number
  /**
   * Time in ms after which a pipeline on a cluster gets an error for each command whose node has not responded, with the replies of the
   * others. Such a command may still run if its node has received it. Defaults to `timeout`, which fails the whole pipeline.
   */
  pipelineTimeout?: number | undefined
  /**
   * The time in ms since the epoch, for tests that move it. The bridge passes it to scripts that take the time as their
   * first argument, or as its end after a colon like that of Sluice, wherever the time is empty, or absent if the script
   * allows it. Other commands, and the TTL of keys, follow the clock of Redis. Defaults to no change: such a script reads the clock of Redis.
   */
  clock?: () => number
}

export type Bridge = {
  url: string
  /** The token, or the first of several. */
  token: string
  port: number
  /** Returns the bill so far of each database, by its first token. */
  stats(): Record<string, Bill>
  /** Waits for requests in flight, ends the streams, then closes the port and the connections to Redis. */
  close(): Promise<void>
}

/** Enough for a value of 10 MB in base64. */
export const MAX_REPLY = 16 * 1024 * 1024

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
  const { port = 0, host = '127.0.0.1', tls, grace = 3000 } = options
  const { tokens: given, token = given?.[0]?.token ?? 'dev', timeout = 10_000 } = options
  if (!isLoopback(host) && !given && options.token === undefined) {
    throw new Error('token: expected a token, because the bridge is reachable from other machines')
  }
  const bills = new Map<string, Database>()
  const databases: Database[] = []
  const tokens = new Tokens()
  const streams = new Streams()
  const limits = limitsOf(options)
  let isStopping = false
  const closeDatabases = () => {
    for (const database of databases) database.close()
  }
  let server: Server
  try {
    for (const opened of await openBackends(options, token, timeout)) {
      const { checkKeys = true, pipelineTimeout, maxCommands, clock } = options
      const { readOnlyScripts = false } = options
      const { maxReply } = limits
      const settings = {
        checkKeys,
        timeout,
        pipelineTimeout,
        maxCommands,
        clock,
        readOnlyScripts,
        maxReply,
      }
      const database = await Database.open(opened.backend, settings)
      databases.push(database)
      bills.set(opened.token, database)
      for (const { token, readOnly = false } of given ?? [{ token: opened.token }]) {
        tokens.add(token, { database, readOnly })
      }
    }
    const handler = createHandler({
      databases,
      tokens,
      streams,
      admission: new Admission(options.maxRunning ?? 1000, options.maxWaiting ?? 5000),
      limits,
      rtt: options.rtt ?? 0,
      timeout,
      allowHosts: options.allowHosts ?? [],
      log: options.log,
      isStopping: () => isStopping,
    })
    server = serverFor(handler, tls)
    await listen(server, port, host)
  } catch (error) {
    closeDatabases()
    throw error
  }
  const { port: bound } = server.address() as AddressInfo
  const name = host.includes(':') ? `[${host}]` : host
  return {
    url: `${tls ? 'https' : 'http'}://${name}:${bound}`,
    token,
    port: bound,
    stats: () => Object.fromEntries([...bills].map(([name, { bill }]) => [name, { ...bill }])),
    close: async () => {
      isStopping = true
      streams.close()
      await closeServer(server, grace)
      closeDatabases()
    },
  }
}

function limitsOf(options: BridgeOptions): Limits {
  const { maxBody = 10 * 1024 * 1024, maxPipeline = Infinity, maxReply = MAX_REPLY } = options
  return { maxBody, maxPipeline, maxReply }
}

function serverFor(handler: RequestListener, tls: BridgeOptions['tls']): Server {
  // A URL may contain a whole command.
  const limits = { maxHeaderSize: 128 * 1024 }
  const server = tls
    ? createTlsServer({ ...limits, ...tls }, handler)
    : createServer(limits, handler)
  // Longer than clients keep an idle connection, so that no client writes to a connection that the bridge has closed.
  server.keepAliveTimeout = 120_000
  return server
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

/** Waits up to `grace` ms for requests in flight, and closes idle connections. */
async function closeServer(server: Server, grace: number): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve))
  const idle = setInterval(() => server.closeIdleConnections(), 20)
  const late = setTimeout(() => server.closeAllConnections(), grace)
  await closed
  clearInterval(idle)
  clearTimeout(late)
}
