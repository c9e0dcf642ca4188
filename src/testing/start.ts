/** `sluice/testing`: Redis, the bridge and the user's Worker or app for tests. */
import { isIP } from 'node:net'
import { startBridge, startRedis } from 'sluice-upstash-bridge'
import type { Duration } from '../core/base/duration.ts'
import { startApp, type TestApp } from './app.ts'
import { replaceDate, runBy, TestClock } from './clock.ts'
import { serveOrigin, type TestOrigin } from './origin.ts'
import type { Running } from './running.ts'
import { startWorker } from './worker.ts'
import { openProject, type TestWorker, type WranglerProject } from './wrangler.ts'

export type { TestApp } from './app.ts'
export type { TestWorker } from './wrangler.ts'

export interface StartSluiceOptions {
  /** Your Worker, which runs in workerd. Needs wrangler in your project. Not together with `app`. */
  worker?: TestWorker
  /** Your app, which runs in this process. Not together with `worker`. Without both, only Redis and the bridge run. */
  app?: TestApp
  /** More variables, and bindings of `app`. They override those of the wrangler configuration and of the stack. */
  env?: Record<string, unknown>
  /** The origin behind a gateway. Its URL is the variable `ORIGIN`. Defaults to an origin that answers 200 to each request. */
  origin?: TestOrigin
}

export interface TestRequestInit extends RequestInit {
  /** The address of the client. Defaults to `203.0.113.7`. */
  ip?: string
  /** Properties of the client that Cloudflare reports, such as `{ country: 'DE' }`. */
  cf?: Record<string, unknown>
}

export interface SluiceTest extends AsyncDisposable {
  /**
   * The variables of the database: `UPSTASH_REDIS_REST_URL` and `UPSTASH_REDIS_REST_TOKEN`, for an app that you start yourself. Empty if
   * the Worker counts in Durable Objects.
   */
  env: Record<string, string>
  /** The lines that the Worker has logged. */
  logs: readonly string[]
  /** The time of this stack, ms since the epoch. */
  now(): number
  /**
   * Sends a request to the Worker or the app. Does not follow redirects.
   * @param url a path, or an absolute URL, whose host the Worker or the app sees
   * @throws TypeError if `ip` is not an address
   */
  fetch(url: string, init?: TestRequestInit): Promise<Response>
  /**
   * Runs calls of the test itself, such as those of `limits`, by the clock of this stack: `Date.now()` and `new Date()` follow it.
   * @example
   * const { allowed } = await sluice.run(() => quota.limit('invites', 'ann'))
   */
  run<Result>(work: () => Result): Result
  /**
   * Moves the clock of Redis' decisions, of the Worker or app and of `run` forward. Timers and deadlines stay real.
   * @throws RangeError if the duration is not a whole number of milliseconds of at least 1, or a text such as `'1h'`
   */
  advance(duration: Duration): Promise<void>
  /** Deletes all counters, bans and other keys, and everything that the Worker or the app remembers of them. The clock stays. */
  flush(): Promise<void>
  /** Stops Redis, as an outage. Does nothing if the Worker counts in Durable Objects. */
  stopRedis(): Promise<void>
  /** Stops everything. Does nothing the second time. */
  stop(): Promise<void>
}

/**
 * Starts a real Redis, the bridge and your Worker or app on free loopback ports, with a clock that a test can move. A Worker that binds
 * `SluiceSubject` counts in its Durable Objects: then no Redis is started.
 * @example
 * const sluice = await startSluice({ worker: { main: 'src/index.ts' } })
 * afterAll(() => sluice.stop())
 * @throws Error when a server does not start, wrangler is missing or the Worker is invalid. Nothing is left running.
 */
export async function startSluice(options: StartSluiceOptions = {}): Promise<SluiceTest> {
  const { worker, app } = options
  if (worker && app) throw new TypeError('startSluice: expected either worker or app, got both')
  if (app && typeof app.fetch !== 'function') {
    throw new TypeError('app: expected an object with a function fetch, such as a Hono app')
  }
  const project = worker && openProject(worker)
  const stops: (() => Promise<void>)[] = []
  const stopAll = async () => {
    const errors: unknown[] = []
    for (const each of stops.reverse()) await each().catch((error) => errors.push(error))
    if (errors.length > 0) throw errors[0]
  }
  let stopped: Promise<void> | undefined
  const stop = () => (stopped ??= stopAll())
  return start(options, project, stops, stop).catch(async (error) => {
    await stop().catch(() => {}) // the first error is the cause
    throw error
  })
}

const TOKEN = 'test-token'

async function start(
  { app, env: more, origin }: StartSluiceOptions,
  project: WranglerProject | undefined,
  stops: (() => Promise<void>)[],
  stop: () => Promise<void>,
): Promise<SluiceTest> {
  const clock = new TestClock()
  const undo = replaceDate()
  stops.push(async () => undo())
  const env: Record<string, string> = {}
  const redis = project?.countsInObjects() ? undefined : await startDatabase()
  const running = await startRunning()

  async function startDatabase() {
    const redis = await startRedis({ own: true })
    stops.push(redis.stop)
    const target = { url: redis.url, token: TOKEN }
    const bridge = await startBridge({ redis: [target], clock: () => clock.now() })
    stops.push(bridge.close)
    Object.assign(env, { UPSTASH_REDIS_REST_URL: bridge.url, UPSTASH_REDIS_REST_TOKEN: TOKEN })
    async function flush() {
      const headers = { authorization: `Bearer ${TOKEN}` }
      const response = await fetch(bridge.url, { method: 'POST', headers, body: '["FLUSHALL"]' })
      const { error } = (await response.json()) as { error?: string }
      if (error) throw new Error(`FLUSHALL: ${error}`)
    }
    return { stop: redis.stop, flush }
  }

  async function startRunning(): Promise<Running | undefined> {
    if (!project && !app) return undefined
    const served = await serveOrigin(origin ?? (() => new Response('Hello from the origin.\n')))
    stops.push(served.close)
    const all = { ...env, ORIGIN: served.url, ...more }
    const started = app ? startApp(app, all, clock) : await startWorker(project!, all, stops)
    stops.push(started.stop)
    return started
  }

  return {
    env,
    logs: running?.logs ?? [],
    now: () => clock.now(),
    run: (work) => runBy(clock, work),
    async fetch(url, { ip = '203.0.113.7', cf, ...init } = {}) {
      if (!running) throw new TypeError('fetch: startSluice needs the option worker or app')
      const expected = "an IPv4 or IPv6 address such as '203.0.113.7'"
      if (!isIP(ip)) throw new TypeError(`ip: expected ${expected}, got ${JSON.stringify(ip)}`)
      const headers = new Headers(init.headers)
      if (!headers.has('cf-connecting-ip')) headers.set('cf-connecting-ip', ip)
      return running.fetch(url, { redirect: 'manual', ...init, headers }, { ip, cf })
    },
    async advance(duration) {
      clock.advance(duration)
      await running?.setOffset(clock.offsetMs)
    },
    async flush() {
      await redis?.flush()
      await running?.flush()
    },
    stopRedis: async () => redis?.stop(),
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
