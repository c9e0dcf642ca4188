/** The measured variants: Sluice with different settings, other limiters (peers), and three Workers that decide nothing (floor). */
import type { ConfigOptions, PolicyOptions } from '../../../src/core/config/options.ts'
import { type Config, parseConfig } from '../../../src/core/config/parse.ts'
import { defaultFields } from '../../../src/features/defaults.ts'
import { type LimitsConfig, parseLimitsConfig } from '../../../src/limits/limits.ts'

/** The quota that every limiter enforces. */
export interface Quota {
  limit: number
  windowMs: number
}

export interface UpstashSettings {
  algorithm: 'fixed window' | 'sliding window' | 'token bucket'
  /** Use the peer's cache of refusals (`ephemeralCache`). */
  cache: boolean
  quotas: Quota[]
}

export type LimitsSettings = LimitsConfig

/** The variables of every Worker. The same object for each request, as on Cloudflare. */
export interface WorkerEnv {
  UPSTASH_REDIS_REST_URL: string
  UPSTASH_REDIS_REST_TOKEN: string
  /** See `settingsOf`. */
  settings: string
}

/** Cloudflare's rate limiting bindings, by name. `period` is in seconds. */
export type Ratelimits = Record<string, { limit: number; period: 10 | 60 }>

export interface Variant {
  name: string
  by: 'floor' | 'ours' | 'peer'
  /** The file of the Worker in workers/. */
  worker:
    | 'nothing'
    | 'bare-get'
    | 'same-response'
    | 'shared-response'
    | 'ours'
    | 'ours-featured'
    | 'ours-unbuilt'
    | 'ours-observe'
    | 'ours-objects'
    | 'ours-limits'
    | 'ours-limits-unbuilt'
    | 'ours-origin'
    | 'gateway'
    | 'upstash'
    | 'hono-rate-limiter'
    | 'cloudflare'
  /** The settings of the Worker. */
  settings(quotas: Quota[]): object
  /** Parses the settings, as `sluice build` does, for a Worker that gets them so. */
  build?: ((settings: object) => Config) | undefined
  /** A variant with such bindings runs in Miniflare, which simulates them. workerd alone has none. */
  ratelimits?(quotas: Quota[]): Ratelimits
  /** A variant with Durable Objects also runs in Miniflare. */
  hasObjects?: true
  /** A variant that calls an origin: the Worker that does nothing. */
  proxies?: true
}

/** The changes of a variant to the default configuration. */
interface Changes {
  policy?: Partial<PolicyOptions>
  config?: Partial<ConfigOptions>
  /** Use only the first of several quotas. */
  one?: boolean
  /** Use the whole Worker in front of an origin, not the middleware. */
  gateway?: boolean
}

function ours(name: string, { policy = {}, config = {}, one, gateway }: Changes = {}): Variant {
  const settings = (quotas: Quota[]) => ({
    policies: quotas.slice(0, one ? 1 : undefined).map(({ limit, windowMs }, index) => ({
      name: `quota-${index}`,
      limit,
      window: windowMs,
      onStoreError: 'deny', // a failed decision must not count as an admitted one
      ...policy,
      ...(policy.algorithm === 'gcra' && { burst: limit }),
    })),
    deadline: '5s', // long enough for a slow machine
    ...config,
  })
  return {
    name: name && `Sluice, ${name}`,
    by: 'ours',
    worker: gateway ? 'gateway' : 'ours',
    settings,
    build: (options) => parseConfig(options, defaultFields),
  }
}

const leasing = (max: number): Variant => ({
  ...ours(`leases of ${max}`, { policy: { algorithm: 'fixed-window', lease: { max, ttl: '5s' } } }),
  worker: 'ours-featured',
})

const byName = (name: string, batching: boolean): Variant => ({
  name: `Sluice, ${name}`,
  by: 'ours',
  worker: 'ours-limits',
  settings: ([quota]) =>
    ({
      limits: { 'quota-0': { limit: quota!.limit, window: quota!.windowMs, deadline: '5s' } },
      batching,
    }) satisfies LimitsSettings,
  build: (settings) => parseLimitsConfig(settings as LimitsSettings),
})

function upstash(algorithm: UpstashSettings['algorithm'], cache: boolean): Variant {
  return {
    name: `@upstash/ratelimit, ${algorithm}${cache ? ', cache' : ''}`,
    by: 'peer',
    worker: 'upstash',
    settings: (quotas) => ({ algorithm, cache, quotas }) satisfies UpstashSettings,
  }
}

const all = {
  nothing: {
    name: 'a Worker that does nothing',
    by: 'floor',
    worker: 'nothing',
    settings: () => ({}),
  },
  bare: { name: 'one bare GET', by: 'floor', worker: 'bare-get', settings: () => ({}) },
  'same-response': {
    name: 'the same response, no decision',
    by: 'floor',
    worker: 'same-response',
    settings: ([quota]) => quota!,
  },
  'shared-response': {
    name: 'the same response, no decision, one GET for all of 2 ms',
    by: 'floor',
    worker: 'shared-response',
    settings: ([quota]) => quota!,
  },
  ours: ours('default settings', { policy: { onStoreError: 'local' } }),
  'ours-unbuilt': { ...ours('not built'), worker: 'ours-unbuilt', build: undefined },
  'ours-observe': { ...ours('with observe'), worker: 'ours-observe' },
  'ours-one': ours('one policy', { one: true }),
  'ours-unbatched': ours('batching off', { config: { batching: false } }),
  'ours-uncached': ours('denial cache off', { config: { denialCache: false } }),
  'ours-plain': ours('batching and denial cache off', {
    config: { batching: false, denialCache: false },
  }),
  'ours-edge': ours('clock edge', { config: { clock: 'edge' } }),
  'ours-fixed': ours('fixed window', { policy: { algorithm: 'fixed-window' } }),
  'ours-log': {
    ...ours('sliding log', { policy: { algorithm: 'sliding-log' } }),
    worker: 'ours-featured',
  },
  'ours-bucket': ours('token bucket', { policy: { algorithm: 'token-bucket' } }),
  'ours-gcra': ours('GCRA', { policy: { algorithm: 'gcra' } }),
  'ours-limits': byName('limits by name', true),
  'ours-limits-unbuilt': {
    ...byName('limits, not built', true),
    worker: 'ours-limits-unbuilt',
    build: undefined,
  },
  'ours-limits-unbatched': byName('limits, batching off', false),
  'ours-origin': { ...ours('before an origin'), worker: 'ours-origin', proxies: true },
  'ours-gateway': { ...ours('in front of an origin', { gateway: true }), proxies: true },
  'ours-shield': {
    ...ours('with a shield', {
      gateway: true,
      config: { denialCache: false, shield: { binding: 'SHIELD', limit: 1, period: '60s' } },
    }),
    ratelimits: () => ({ SHIELD: { limit: 1, period: 60 } }),
  },
  'ours-objects': {
    ...ours('Durable Objects, simulated'),
    worker: 'ours-objects',
    hasObjects: true,
  },
  'ours-lease-10': leasing(10),
  'ours-lease-50': leasing(50),
  'upstash-fixed': upstash('fixed window', false),
  'upstash-sliding': upstash('sliding window', false),
  'upstash-bucket': upstash('token bucket', false),
  'upstash-fixed-cache': upstash('fixed window', true),
  'upstash-sliding-cache': upstash('sliding window', true),
  'upstash-bucket-cache': upstash('token bucket', true),
  hono: {
    name: 'hono-rate-limiter',
    by: 'peer',
    worker: 'hono-rate-limiter',
    settings: (quotas) => ({ quotas }),
  },
  cloudflare: {
    name: "Cloudflare's binding, simulated",
    by: 'peer',
    worker: 'cloudflare',
    settings: () => ({}),
    // Its periods are 10 s and 60 s.
    ratelimits: (quotas) => ({ LIMITER: { limit: quotas[0]!.limit, period: 60 } }),
  },
} satisfies Record<string, Variant>

export type VariantId = keyof typeof all
export const variants: Record<VariantId, Variant> = all

/** The variable `settings` of a Worker. `more` adds to the settings. */
export function settingsOf(id: VariantId, quotas: Quota[], more: object = {}): string {
  const { settings, build } = variants[id]
  const all = { ...settings(quotas), ...more }
  return JSON.stringify(build ? build(all) : all)
}
