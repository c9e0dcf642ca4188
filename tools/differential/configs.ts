/** Random configurations. */
import { createHash } from 'node:crypto'
import type { Draw } from './draw.ts'
import type { HostName } from './hosts.ts'
import { condition, type Has, policy } from './policies.ts'

/** A feature, with its options. */
export type Use = [feature: string, ...options: unknown[]]

type Policies = Record<string, unknown> & { policies: Record<string, unknown>[] }

/** The store on Durable Objects, by the function that makes it. */
export const durableStore = 'durableObjects'

export interface Drawn {
  host: HostName
  /** Redis over HTTP, or Durable Objects. */
  store: 'redis' | typeof durableStore
  /** The configuration without `use`. It may be invalid. */
  config: Policies
  /** The live document. */
  live: Policies
  use: Use[]
  /** True if the new side gets the configuration as `npx sluice build` writes it. */
  isBuilt: boolean
}

/** The bindings of the Worker. */
export const bindingsOf = ({ live }: Drawn) => ({
  SHIELD: { limit: async () => ({ success: Date.now() % 3 > 0 }) },
  DOCUMENTS: { get: async () => JSON.stringify(live) },
})

export const ORIGIN = 'https://origin.example'
/** How long a limiter waits, ms. */
const DEADLINE_MS = 500
export const API_KEYS = ['key-one', 'key-two', 'key-three']
/** Variables of both sides. */
export const VARIABLES = {
  SLUICE_SECRET: 'a-secret-of-both-sides',
  SLUICE_API_TOKEN: 'a-token-of-the-api',
  SLUICE_OPERATE_TOKEN: 'a-token-of-operators',
  SLUICE_PROXY_TOKEN: 'a-token-of-proxies',
  SLUICE_VERIFY_TOKEN: 'a-token-of-verifiers',
  JWT_SECRET: 'a-secret-of-at-least-thirty-two-bytes',
  API_KEYS: API_KEYS.slice(0, 2)
    .map((key) => createHash('sha256').update(key).digest('hex'))
    .join(' '),
}

const headers = ({ pick }: Draw) =>
  pick<unknown>(
    'draft-7',
    'draft-6',
    'github',
    'off',
    ['draft-11', 'github'],
    ['draft-6', { prefix: 'X-Limit-', reset: 'iso' }],
    { prefix: 'X-RateLimit-', reset: 'epoch' },
    { prefix: 'X-RateLimit-', reset: 'delta' },
  )

/** A gateway does not know the address of the connection if it does not run on Workers. */
const clientAddress = ({ pick }: Draw, has: Has, isGateway: boolean) =>
  pick<unknown>(
    'cloudflare',
    { header: 'x-real-ip', trustedProxies: 1 },
    { forwardedFor: { trustedProxies: 2 } },
    (request: Request) => request.headers.get('x-real-ip'),
    ...(isGateway
      ? []
      : [
          'socket',
          { header: 'x-real-ip', trustedProxies: ['203.0.113.0/24'] },
          { forwardedFor: { trustedProxies: ['203.0.113.1', '2001:db8::/64'] } },
        ]),
    ...(has('proxies') && !isGateway
      ? [{ forwardedFor: { trustedProxies: ['private', '203.0.113.2'] } }]
      : []),
  )

/** Features that some hosts have by default. */
const FREE = [
  'bans',
  'concurrency',
  'headerSets',
  'leases',
  'live',
  'overrides',
  'plans',
  'refusals',
  'shield',
  'slidingLog',
]
/** Features that change nothing unless a field or a request uses them. */
const WITHOUT_OPTIONS = [...FREE, 'banList', 'bodies', 'distinct', 'proxies', 'turns', 'verify']

/** The features of two sides. */
export interface Features {
  /** True if both sides have a feature. */
  has: Has
  /** True if a side has a feature by default, and does not export it. */
  isByDefault: Has
}

/** @param exported reports for each side whether it exports a feature */
export const featuresOf = (exported: (feature: string) => boolean[]): Features => {
  const isByDefault: Has = (feature) =>
    WITHOUT_OPTIONS.includes(feature) && !exported(feature).every(Boolean)
  return {
    has: (feature) => exported(feature).every(Boolean) || isByDefault(feature),
    isByDefault,
  }
}

const HOSTS = [
  ...['app', 'app', 'app', 'gateway', 'gateway', 'gateway', 'hono', 'hono', 'hono'],
  ...['http', 'express', 'fastify', 'next'],
] as HostName[]
/** Hosts whose variables are those of the process, which are texts. */
const WITHOUT_BINDINGS: HostName[] = ['http', 'express', 'fastify', 'next']

export function drawConfig(draw: Draw, { has, isByDefault }: Features): Drawn {
  const { pick, chance, maybe } = draw
  const host = pick(...HOSTS)
  const [isGateway, hasBindings] = [host === 'gateway', !WITHOUT_BINDINGS.includes(host)]
  const store = hasBindings && has(durableStore) && chance(0.2) ? durableStore : 'redis'
  const usual = { gateway: 'cloudflare', next: { header: 'x-real-ip', trustedProxies: 1 } }
  const used = (feature: string, share = 1, ...options: unknown[]): Use[] =>
    has(feature) && chance(isByDefault(feature) ? 1 : share) ? [[feature, ...options]] : []
  const use: Use[] = [
    ...FREE.flatMap((feature) => used(feature, isGateway ? 0.2 : 1)),
    ...used('bodies'),
    ...used('distinct'),
    ...used('turns'),
    ...used('jwt', 1, { secret: 'JWT_SECRET' }),
    ...used('proxies'),
    ...used('verify', isGateway ? 0.2 : 0.4),
    ...(store === 'redis' ? used('banList', 0.3) : []),
    ...used('jitter', 0.1, '10%'),
    ...used('observe', 0.3),
    ...used('quota', 0.2, { limit: 5 }),
  ]
  const isListed = () => use.some(([feature]) => feature === 'banList')
  if (!isGateway) use.push(...used('endpoints', isListed() ? 0.8 : 0.4))
  const names = ['one', 'two', 'three', 'four'].slice(0, pick(1, 1, 2, 2, 3, 4))
  const drawPolicy = (name: string) => policy(draw, name, has, isListed())
  const policies = names.map(drawPolicy)
  // A side without `banList()` lists the bans of operators if a policy has a list.
  if (isListed() && !policies.some(({ penalty }) => Object(penalty).list))
    use.splice(
      use.findIndex(([feature]) => feature === 'banList'),
      1,
    )
  // A live document is JSON, so it has no functions.
  const live: Policies = JSON.parse(JSON.stringify({ policies: names.map(drawPolicy) }))
  // Limits of one key are decided by one script.
  if (chance(0.4)) for (const one of policies) Object.assign(one, { key: 'header:x-user' })
  return {
    host,
    store,
    use,
    live,
    config: {
      ...(isGateway && { origin: ORIGIN }),
      policies,
      tables: { customers: { u1: 'free', u2: 'pro' } },
      clientAddress: chance(0.5)
        ? ((usual as Record<string, unknown>)[host] ?? 'socket')
        : clientAddress(draw, has, isGateway),
      clock: store === 'redis' ? pick('edge', 'store') : 'store',
      deadline: DEADLINE_MS,
      denialCache: chance(0.7),
      batching: chance(0.7),
      caseSensitivePaths: maybe(0.2, () => true),
      deny: maybe(0.2, () => [{ name: 'bad', ...condition(draw) }, { ip: '203.0.113.99' }]),
      allow: maybe(0.2, () => [
        { name: 'good', ...condition(draw) },
        { header: { 'x-user': 'u3' }, policies: names[0] },
      ]),
      cors: maybe(0.2, () => ({ origins: ['https://page.example'] })),
      headers: maybe(0.5, () => headers(draw)),
      apiKeys: maybe(0.5, () => ({
        from: pick<unknown>('bearer', ['header:x-api-key', 'query:key']),
        known: pick(undefined, 'API_KEYS'),
      })),
      ...(has('live') && {
        live: maybe(hasBindings ? 0.1 : 0, () => ({
          from: 'kv:DOCUMENTS',
          every: pick('5s', '10m'),
        })),
      }),
      ...(has('shield') && {
        shield: maybe(hasBindings ? 0.1 : 0, () => ({
          binding: 'SHIELD',
          limit: 100,
          period: '10s',
        })),
      }),
      refusal: maybe(
        0.1,
        () => (decision: { reason: string }) =>
          new Response(`all ${decision.reason}`, { status: 429 }),
      ),
    },
    isBuilt: chance(0.5),
  }
}

/** The names of what a configuration has: its host, its store, its features, and its fields. */
export function partsOf({ host, store, use, config, isBuilt }: Drawn): Set<string> {
  const fields = [config, ...config.policies].flatMap((one) =>
    Object.keys(one).filter((name) => one[name] !== undefined),
  )
  return new Set([
    host,
    store,
    ...(isBuilt ? ['built'] : []),
    ...use.map(([feature]) => feature),
    ...fields,
  ])
}
