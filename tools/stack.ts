import { fileURLToPath } from 'node:url'
import { type RunningRedis, startBridge, startRedis } from 'sluice-upstash-bridge'
import { startOrigin } from '../cli/dev/origin.ts'
import type { BodiesOptions } from '../src/features/bodies/index.ts'
import type { ObserveOptions } from '../src/features/observe/index.ts'
import type { JsonConfig } from './any-config.ts'
import { type BuiltModules, build, buildEntry } from './build.ts'
import { startWorker, type WorkerOptions } from './worker.ts'

const built = (name: string) => fileURLToPath(new URL(`../.cache/workers/${name}`, import.meta.url))

/** Builds the Workers that `startStack` runs. The global setup of the tests calls this once. */
export async function buildStack(): Promise<void> {
  await Promise.all([
    build(built('worker')),
    buildEntry(built('any-config'), 'tools/any-config.ts'),
  ])
}

export interface StackOptions {
  /** The configuration. Defaults to sluice.config.ts, in the Worker as it is deployed. */
  config?: JsonConfig
  /** The options of `observe()`. Only together with `config`. */
  observe?: ObserveOptions
  /** The options of `bodies()`, except `graphql`, which is `graphqlCost()`. Only together with `config`. */
  bodies?: Omit<BodiesOptions, 'graphql'>
  /** The folder of a built Worker to run instead, or its modules. */
  worker?: string | BuiltModules
  /** Variables and secrets. They override those of the stack. */
  env?: Record<string, string>
  /** Rate limits of Cloudflare, by binding. */
  ratelimits?: NonNullable<WorkerOptions['ratelimits']>
}

export type FetchOptions = RequestInit & { ip?: string; cf?: Record<string, unknown> }

/**
 * Starts a Redis, the bridge, the demo origin, and the Worker in workerd, on free loopback ports.
 * @param start starts the Redis. Defaults to one of its own
 */
export async function startStack(
  { config, observe, bodies, worker: other, env, ratelimits }: StackOptions = {},
  start: () => Promise<RunningRedis> = startRedis,
) {
  const redis = await start()
  const bridge = await startBridge({ redis: redis.url, token: 'a-local-token' })
  const origin = await startOrigin()
  const worker = await startWorker(other ?? built(config ? 'any-config' : 'worker'), {
    env: {
      UPSTASH_REDIS_REST_URL: bridge.url,
      UPSTASH_REDIS_REST_TOKEN: bridge.token,
      ORIGIN: origin.url,
      // A long deadline, so that a slow machine causes no store errors.
      ...(config && { CONFIG: JSON.stringify({ deadline: '10s', ...config }) }),
      ...(observe && { OBSERVE: JSON.stringify(observe) }),
      ...(bodies && { BODIES: JSON.stringify(bodies) }),
      ...env,
    },
    ...(ratelimits && { ratelimits }),
  })
  return {
    redis,
    bridge,
    origin,
    worker,
    url: worker.url,
    /** Number of HTTP requests that the bridge has answered. */
    httpRequests: () => bridge.stats()[bridge.token]!.http,
    /** Fetches a path through the Worker without following redirects. `ip` and `cf` are what Cloudflare knows of the client. */
    fetch(path: string, { ip = '203.0.113.7', cf, headers = {}, ...init }: FetchOptions = {}) {
      return fetch(worker.url + path, {
        redirect: 'manual',
        ...init,
        headers: {
          'CF-Connecting-IP': ip,
          ...(cf && { 'MF-CF-Blob': JSON.stringify(cf) }),
          ...(headers as Record<string, string>),
        },
      })
    },
    async stop() {
      await worker.stop()
      await Promise.all([bridge.close(), origin.close()])
      await redis.stop()
    },
  }
}

export type Stack = Awaited<ReturnType<typeof startStack>>
