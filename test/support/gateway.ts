/** The gateway in this process, on a real Redis and in front of the demo origin: what `startStack` runs in workerd. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { type Bridge, type RunningRedis, startBridge } from 'sluice-upstash-bridge'
import { afterAll, beforeAll, beforeEach } from 'vitest'
import { type RunningOrigin, startOrigin } from '../../cli/dev/origin.ts'
import { replaceDate, runBy, TestClock } from '../../src/testing/clock.ts'
import { gatewayOf, type JsonConfig } from '../../tools/any-config.ts'
import type { FetchOptions, StackOptions } from '../../tools/stack.ts'
import { borrowRedis } from './borrow-redis.ts'

/** The log of the isolate whose code runs. */
const logOf = new AsyncLocalStorage<string[]>()

/** Gives the lines of an isolate to its log, and the time of its clock to its code. Returns a function that undoes it. */
function separateIsolates(): () => void {
  const restoreDate = replaceDate()
  const { error, log } = console
  for (const [name, write] of Object.entries({ error, log })) {
    console[name as 'error' | 'log'] = (...line) => {
      const lines = logOf.getStore()
      if (lines) lines.push(line.join(' '))
      else write(...line)
    }
  }
  return () => {
    restoreDate()
    Object.assign(console, { error, log })
  }
}

type Env = Record<string, unknown>

export interface IsolateOptions extends Pick<StackOptions, 'observe' | 'bodies'> {
  /** More variables, secrets and bindings. They override those of the database and of the origin. */
  env?: Env
}

/** Starts an isolate: a gateway with a memory of its own. Of the client it knows what a Worker on Cloudflare knows. */
function startIsolate(
  config: JsonConfig,
  env: Env,
  clock: TestClock,
  { observe, bodies, env: more }: IsolateOptions,
) {
  let gateway: ReturnType<typeof gatewayOf> | undefined
  const logs: string[] = []
  const background = new Set<Promise<unknown>>()
  const waitUntil = (promise: Promise<unknown>) => {
    const settled = promise.catch(() => {}).finally(() => background.delete(settled))
    background.add(settled)
  }
  const context = { waitUntil, passThroughOnException() {}, props: {} }
  return {
    /** The lines that this isolate has logged. */
    logs,
    /** The events of these lines. */
    events: () => logs.map((line) => JSON.parse(line).event as string),
    /** Sends a path, or a whole URL. `ip` and `cf` are what Cloudflare knows of the client. `only` are variables of this request. */
    async fetch(
      url: string,
      { ip = '203.0.113.7', cf = {}, headers, ...init }: FetchOptions = {},
      only: Env = {},
    ): Promise<Response> {
      // As in workerd, the first request evaluates the configuration.
      gateway ??= gatewayOf({
        // A long deadline, so that a slow machine causes no store errors.
        CONFIG: JSON.stringify({ deadline: '10s', clientAddress: 'cloudflare', ...config }),
        ...(observe && { OBSERVE: JSON.stringify(observe) }),
        ...(bodies && { BODIES: JSON.stringify(bodies) }),
      })
      const request = new Request(url.startsWith('/') ? `http://localhost${url}` : url, {
        ...init,
        headers: { 'CF-Connecting-IP': ip, ...(headers as Record<string, string>) },
      })
      Object.defineProperty(request, 'cf', { value: cf })
      const answer = () => gateway!.fetch(request, { ...env, ...more, ...only }, context)
      return runBy(clock, () => logOf.run(logs, answer))
    },
    /** Forgets what the isolate remembers, as a new one does. */
    forget() {
      gateway = undefined
    },
    /** Waits for everything that `waitUntil` keeps alive. */
    async settled() {
      while (background.size > 0) await Promise.all(background)
    },
  }
}

export interface GatewayOptions extends IsolateOptions {
  config: JsonConfig
  /** The clock of the isolates and of Redis' decisions. Defaults to their own clocks. */
  clock?: TestClock
}

/** Runs a Redis, the bridge, the demo origin and one isolate, from before the first test of a file or a `describe` until its end. */
export function useGateway({ config, clock, ...options }: GatewayOptions) {
  const env: Env = {}
  const start = (config: JsonConfig, options: IsolateOptions = {}) =>
    startIsolate(config, env, clock ?? new TestClock(), options)
  const gateway = {
    /** The variables of the database and of the origin. */
    env,
    /** Starts another isolate on the same database and origin. */
    start,
    ...start(config, options),
    /** The number of HTTP requests that the bridge has answered. */
    httpRequests: () => gateway.bridge.stats()[gateway.bridge.token]?.http ?? 0,
  } as ReturnType<typeof startIsolate> & {
    env: Env
    start: typeof start
    redis: RunningRedis
    bridge: Bridge
    origin: RunningOrigin
    httpRequests: () => number
  }
  beforeAll(separateIsolates)
  beforeEach(({ task }) => {
    if (task.result?.retryCount) gateway.forget() // the setup file empties its Redis
  })
  beforeAll(async () => {
    gateway.redis = await borrowRedis()
    gateway.bridge = await startBridge({
      redis: gateway.redis.url,
      token: 'a-local-token',
      ...(clock && { clock: () => clock.now() }),
    })
    gateway.origin = await startOrigin()
    const { bridge, origin } = gateway
    Object.assign(env, { UPSTASH_REDIS_REST_URL: bridge.url, ORIGIN: origin.url })
    env.UPSTASH_REDIS_REST_TOKEN = bridge.token
  })
  afterAll(async () => {
    await Promise.all([gateway.bridge?.close(), gateway.origin?.close()])
    await gateway.redis?.stop()
  })
  return gateway
}

export type Isolate = ReturnType<typeof startIsolate>
export type Gateway = ReturnType<typeof useGateway>
