/** Random configurations. */
import { createHash } from 'node:crypto'
import { inGateway } from '../../src/core/config/needs.ts'
import type { Draw } from './draw.ts'
import { condition, type Has, policy } from './policies.ts'

/** A feature, with its options. */
export type Use = [feature: string, ...options: unknown[]]

type Policies = Record<string, unknown> & { policies: Record<string, unknown>[] }

export interface Drawn {
  host: 'app' | 'gateway'
  /** The configuration without `use`. It may be invalid. */
  config: Policies
  /** The live document. */
  live: Policies
  use: Use[]
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

/** @param has tells which features the sides have */
export function drawConfig(draw: Draw, has: Has): Drawn {
  const { pick, chance, whole, maybe } = draw
  const host = pick('app', 'gateway')
  const usual = host === 'gateway' ? 'cloudflare' : 'socket'
  const used = (feature: string, share = 1, ...options: unknown[]): Use[] =>
    has(feature) && chance(share) ? [[feature, ...options]] : []
  const use: Use[] = [
    ...inGateway.flatMap((feature) => used(feature, host === 'app' ? 1 : 0.2)),
    ...used('bodies'),
    ...used('distinct'),
    ...used('jwt', 1, { secret: 'JWT_SECRET' }),
    ...used('proxies'),
    ...used('jitter', 0.1, '10%'),
    ...used('observe', 0.3),
    ...used('quota', 0.2, { limit: 5 }),
    ...used('shards', 0.1, ['one', 'two']),
    ...used('endpoints', host === 'app' ? 0.4 : 0),
  ]
  const names = ['one', 'two', 'three', 'four'].slice(0, pick(1, 1, 2, 2, 3, 4))
  const policies = names.map((name) => policy(draw, name, has))
  // A live document is JSON, so it has no functions.
  const live: Policies = JSON.parse(
    JSON.stringify({ policies: names.map((name) => policy(draw, name, has)) }),
  )
  // Limits of one key are decided by one script.
  if (chance(0.4)) for (const one of policies) Object.assign(one, { key: 'header:x-user' })
  return {
    host,
    use,
    live,
    config: {
      ...(host === 'gateway' && { origin: ORIGIN }),
      policies,
      tables: { customers: { u1: 'free', u2: 'pro' } },
      clientAddress: chance(0.5) ? usual : clientAddress(draw, has, host === 'gateway'),
      clock: pick('edge', 'store'),
      deadline: DEADLINE_MS,
      hashKeys: chance(0.5),
      denialCache: chance(0.7),
      batching: chance(0.7),
      degradedHeader: maybe(0.3, () => true),
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
        live: maybe(0.1, () => ({ from: 'kv:DOCUMENTS', every: pick('5s', '10m') })),
      }),
      ...(has('shield') && {
        shield: maybe(0.1, () => ({ binding: 'SHIELD', limit: 100, period: '10s' })),
      }),
      api: maybe(0.15, () => ({ callers: { limit: whole(2, 8), window: '10s' } })),
      refusal: maybe(
        0.1,
        () => (decision: { reason: string }) =>
          new Response(`all ${decision.reason}`, { status: 429 }),
      ),
    },
  }
}
