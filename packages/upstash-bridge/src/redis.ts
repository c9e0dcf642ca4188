import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ServerBinary } from './binary.ts'
import { newClient } from './client.ts'
import { findServer } from './find.ts'
import { freePort } from './free-port.ts'
import { REDIS } from './redis-server.ts'
import { afterDeath } from './watchdog.ts'

export type RedisOptions = {
  /** TCP port on 127.0.0.1. Ignored when `REDIS_URL` is used. Defaults to a free port. */
  port?: number
  /** Receives progress messages for steps that take seconds. Defaults to no messages. */
  log?: (line: string) => void
  /** Additional arguments for the server, such as `['--maxmemory', '3mb']`. Defaults to none. */
  args?: string[]
  /** Ignores `REDIS_URL`, for tests that flush the database. Defaults to false. */
  own?: boolean
}

export type RunningRedis = {
  url: string
  /** Description for messages: `redis-server 7.0.15 from PATH` or `REDIS_URL`. */
  source: string
  /** True if `startRedis` started the server. Never flush or stop a Redis that is not owned. */
  owned: boolean
  /** Stops the server and removes its folder. Does nothing if not `owned`. */
  stop(): Promise<void>
  /** Resolves when the server has ended, by `stop()` or unexpectedly. Never resolves if not `owned`. */
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null; lastLines: string }>
}

/**
 * Starts a Redis on a free loopback port, without persistence; or uses `REDIS_URL` if set. Searches for the binary as
 * `find.ts` and `redis-server.ts` describe. Resolves when Redis responds to PING.
 *
 * @example
 * const redis = await startRedis()
 * // … redis.url …
 * await redis.stop()
 *
 * @throws Error with the last output of the server when it does not start, or with installation instructions when there
 * is no server.
 */
export async function startRedis(options: RedisOptions = {}): Promise<RunningRedis> {
  const given = options.own ? undefined : process.env.REDIS_URL
  if (given) {
    await ping(given).catch((cause) => {
      throw new Error(`REDIS_URL does not respond: ${describe(cause)}`, { cause })
    })
    return {
      url: given,
      source: 'REDIS_URL',
      owned: false,
      stop: async () => {},
      exited: new Promise(() => {}),
    }
  }
  // Another process may take the port before the server binds it.
  for (let attempt = 1; ; attempt++) {
    const server = await findServer(REDIS, options.log)
    try {
      return await run(server, options.port ?? (await freePort()), options.args ?? [])
    } catch (error) {
      const lost = error instanceof Error && /address already in use/i.test(error.message)
      if (!lost || options.port !== undefined || attempt === 5) throw error
    }
  }
}

async function run(server: ServerBinary, port: number, more: string[]): Promise<RunningRedis> {
  const dir = await mkdtemp(join(tmpdir(), 'sluice-redis-'))
  const options = ['--bind', '127.0.0.1', '--port', `${port}`, '--dir', dir, '--daemonize', 'no']
  const child = spawn(server.file, [...options, '--save', '', '--appendonly', 'no', ...more], {
    argv0: server.argv0,
    env: { ...process.env, ...server.env },
    stdio: ['ignore', 'pipe', 'pipe'],
    // In its own process group, so that Ctrl-C reaches only this process, which then stops the server.
    detached: true,
  })
  const log = keepLastLines(child)
  const exited = new Promise<Awaited<RunningRedis['exited']>>((resolve) => {
    child.once('error', (error) => {
      resolve({ code: null, signal: null, lastLines: error.message })
    })
    child.once('close', (code, signal) => resolve({ code, signal, lastLines: log.last() }))
  }).finally(async () => {
    await rm(dir, { recursive: true, force: true })
    if (server.disposable) await rm(server.disposable, { recursive: true, force: true })
  })
  exited.then(afterDeath('kill "$1" 2>/dev/null; rm -rf "$2"', String(child.pid), dir))

  const stop = async () => {
    const late = setTimeout(() => child.kill('SIGKILL'), 3000)
    child.kill('SIGTERM')
    await exited
    clearTimeout(late)
  }
  const url = `redis://127.0.0.1:${port}`
  try {
    // Wait for the server's log line first: another server on this port could respond to the PING.
    await Promise.race([log.ready, failed(exited), timeout(10_000)])
    await ping(url)
  } catch (cause) {
    await stop()
    const output = log.last() || describe(cause)
    throw new Error(`${server.source} did not start on port ${port}. Its last output:\n${output}`, {
      cause,
    })
  }
  return { url, source: server.source, owned: true, stop, exited }
}

/** Collects the output of the server: its last 15 lines, and when it is ready for connections. */
function keepLastLines(child: ChildProcess) {
  let text = ''
  let resolve = () => {}
  const ready = new Promise<void>((resolveReady) => {
    resolve = resolveReady
  })
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text = (text + chunk).slice(-8192)
      if (text.includes('Ready to accept connections')) resolve()
    })
  }
  return { ready, last: () => text.trim().split('\n').slice(-15).join('\n') }
}

async function failed(exited: RunningRedis['exited']): Promise<never> {
  const { code, signal } = await exited
  throw new Error(`it ended with ${signal ?? `code ${code}`}`)
}

function timeout(ms: number): Promise<never> {
  return new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`not ready after ${ms} ms`)), ms).unref()
  })
}

async function ping(url: string): Promise<void> {
  const client = newClient({ url, socket: { reconnectStrategy: false, connectTimeout: 3000 } })
  client.on('error', () => {})
  await client.connect()
  try {
    await client.ping()
  } finally {
    client.destroy()
  }
}

function describe(cause: unknown): string {
  return cause instanceof Error ? cause.message || cause.name : String(cause)
}
