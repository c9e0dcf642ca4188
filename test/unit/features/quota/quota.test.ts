/** `GET /_sluice/quota`: what is left, for the client. */

import { describe, expect, test } from 'vitest'
import type { ConfigOptions } from '../../../../src/core/config/options.ts'
import type { Policy } from '../../../../src/core/config/parse.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import { bodies } from '../../../../src/features/bodies/index.ts'
import { dependsOnRequest, forSenders } from '../../../../src/features/quota/caller.ts'
import { type CallerQuotas, quota } from '../../../../src/features/quota/index.ts'
import { createSluice } from '../../../../src/hosts/app/sluice.ts'
import { createGateway } from '../../../../src/hosts/worker/gateway.ts'
import { useDatabase } from '../../../support/database.ts'
import { bans, distinct, plans } from '../../../support/features.ts'

const database = useDatabase()
let namespaces = 0

const policy = (name: string, rest: object = {}) =>
  ({ name, algorithm: 'fixed-window', limit: 10, window: '1h', ...rest }) as const

/** A limiter, and the requests of its clients. The header `x-ip` has the address. */
function limiter(policies: object[], { use = [quota()], ...rest }: Partial<ConfigOptions> = {}) {
  const sluice = createSluice({
    namespace: `quota-${++namespaces}`,
    deadline: '10s',
    clientAddress: (request: Request) => request.headers.get('x-ip'),
    ...rest,
    policies: policies as ConfigOptions['policies'],
    use,
  } as ConfigOptions)
  const send = (
    path: string,
    headers: Record<string, string> = {},
    method = 'GET',
    body?: string,
  ) =>
    sluice.check(
      new Request(`https://a.test${path}`, {
        method,
        ...(body && { body }),
        headers: { 'x-ip': '192.0.2.1', ...headers },
      }),
      { env: database.env },
    )
  return {
    send,
    async quotas(headers: Record<string, string> = {}) {
      const { allowed, response } = await send('/_sluice/quota', headers)
      expect([allowed, response?.status]).toEqual([false, 200])
      return (await response!.json()) as CallerQuotas
    },
  }
}

test('A client reads what is left of its quotas, and reading charges none.', async () => {
  const { send, quotas } = limiter([
    policy('per-ip'),
    policy('exports', { match: { path: '/export', method: 'POST' }, limit: 2 }),
    policy('per-key', { key: 'header:x-key', onMissingKey: 'skip' }),
  ])
  await send('/')
  await send('/export', { 'x-key': 'a' }, 'POST')
  const expected = [
    { policy: 'per-ip', limit: 10, windowMs: 3_600_000, remaining: 8 },
    { policy: 'exports', limit: 2, remaining: 1 },
  ]
  for (let times = 0; times < 3; times += 1) {
    expect(await quotas()).toMatchObject({ quotas: expected, perRequest: [] })
  }
  expect((await quotas()).quotas).toHaveLength(2)
  const withKey = await quotas({ 'x-key': 'a' })
  expect(withKey.quotas[2]).toMatchObject({ policy: 'per-key', remaining: 9 })
  expect(withKey.quotas[2]!.resetAfterMs).toBeGreaterThan(3_500_000)
  const other = await quotas({ 'x-ip': '192.0.2.2' })
  expect(other.quotas.map(({ remaining }) => remaining)).toEqual([10, 2])
})

test('The answer has only public fields, and is not cached.', async () => {
  const { send } = limiter([policy('per-ip')])
  const { response } = await send('/_sluice/quota')
  expect(response!.headers.get('cache-control')).toBe('no-store')
  expect(response!.headers.get('ratelimit')).toBeNull()
  expect(await response!.json()).toEqual({
    quotas: [
      {
        policy: 'per-ip',
        limit: 10,
        windowMs: 3_600_000,
        remaining: 10,
        nextAfterMs: 0,
        resetAfterMs: 0,
      },
    ],
    perRequest: [],
  })
})

test('A used-up quota and a ban are reported, not refused.', async () => {
  const { send, quotas } = limiter(
    [policy('per-ip', { limit: 1, penalty: { after: 1, within: '1h', ban: '2h' } })],
    { use: [quota(), bans()] },
  )
  await send('/')
  expect((await quotas()).quotas[0]).toMatchObject({ remaining: 0 })
  await send('/')
  const [banned] = (await quotas()).quotas
  expect(banned!.bannedForMs).toBeGreaterThan(7_000_000)
})

test('A policy whose key depends on the request is named, and has no numbers.', async () => {
  const { quotas } = limiter(
    [
      policy('per-ip'),
      policy('per-tool', { key: ['ip', 'body:params.name'] }),
      policy('per-file', { key: 'path:id', match: { path: '/files/:id' } }),
      policy('per-method', { key: ['ip', 'method'] }),
      policy('hidden', { mode: 'shadow' }),
    ],
    { use: [quota(), bodies()] },
  )
  const { quotas: list, perRequest } = await quotas()
  expect(list.map(({ policy }) => policy)).toEqual(['per-ip'])
  expect(perRequest).toEqual(['per-tool', 'per-file', 'per-method'])
})

test('Plans, allowed clients and denied clients count as for any other request.', async () => {
  const { send, quotas } = limiter(
    [policy('per-ip', { plan: 'header:x-plan', limits: { pro: 50 } })],
    { allow: [{ ip: '192.0.2.9' }], deny: [{ ip: '192.0.2.66' }], use: [quota(), plans()] },
  )
  expect((await quotas({ 'x-plan': 'pro' })).quotas[0]).toMatchObject({ limit: 50, remaining: 50 })
  expect((await quotas({ 'x-ip': '192.0.2.9' })).quotas).toEqual([])
  const { response } = await send('/_sluice/quota', { 'x-ip': '192.0.2.66' })
  expect(response!.status).toBe(403)
})

test.each([{ not: { path: '/api/*' } }, { method: 'GET' }] as const)(
  'An exemption of some requests of a client, %j, hides no policy.',
  async (allow) => {
    const { quotas } = limiter([policy('per-ip')], { allow })
    expect((await quotas()).quotas).toHaveLength(1)
  },
)

test('A count of different values is listed, although this request has no value.', async () => {
  const counted = { limit: 3, window: '1h', distinct: 'body:user' } as const
  const { send, quotas } = limiter(
    [
      { name: 'refuse', ...counted, onMissingKey: 'refuse' },
      { name: 'skip', ...counted, onMissingKey: 'skip' },
    ],
    { use: [quota(), bodies(), distinct()] },
  )
  expect((await quotas()).quotas.map(({ remaining }) => remaining)).toEqual([3, 3])
  const headers = { 'content-type': 'application/json' }
  await send('/', headers, 'POST', '{"user":"ann"}')
  expect((await quotas()).quotas.map(({ remaining }) => remaining)).toEqual([2, 2])
})

test('A key that the policies refuse is refused here too, and not told of a full quota.', async () => {
  const digest = '2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683' // of "key"
  const sluice = createSluice({
    namespace: `quota-${++namespaces}`,
    deadline: '10s',
    clientAddress: () => '192.0.2.1',
    apiKeys: { known: 'API_KEYS' },
    policies: [policy('per-key', { key: 'api-key', onMissingKey: 'refuse' }), policy('per-ip')],
    use: [quota()],
  } as ConfigOptions)
  const ask = async (path: string, headers: Record<string, string>) => {
    const env = { ...database.env, API_KEYS: digest }
    const { response } = await sluice.check(new Request(`https://a.test${path}`, { headers }), {
      env,
    })
    return [response?.status, ((await response?.json()) as { detail?: string })?.detail]
  }
  const unknown = [403, 'The API key is not known.']
  for (const path of ['/', '/_sluice/quota'])
    expect(await ask(path, { 'x-api-key': 'typo' })).toEqual(unknown)
  expect(await ask('/_sluice/quota', { 'x-api-key': 'key' })).toEqual([200, undefined])
  expect(await ask('/_sluice/quota', {})).toEqual([200, undefined])
})

test('A client without a required key has no quota of that policy.', async () => {
  const { quotas } = limiter([
    policy('per-key', { key: 'header:x-key', onMissingKey: 'refuse' }),
    policy('shared', { key: 'header:x-key' }),
    policy('or-ip', { key: 'header:x-key', onMissingKey: { key: 'ip' } }),
  ])
  expect((await quotas()).quotas.map(({ policy }) => policy)).toEqual(['shared', 'or-ip'])
  expect((await quotas({ 'x-key': 'a' })).quotas).toHaveLength(3)
})

test('The endpoint is itself limited by address.', async () => {
  const { send, quotas } = limiter([policy('per-ip')], { use: [quota({ limit: 2, window: '1h' })] })
  await quotas()
  await quotas()
  const { response } = await send('/_sluice/quota')
  expect(response!.status).toBe(429)
  expect(Number(response!.headers.get('retry-after'))).toBeGreaterThan(0)
  expect((await send('/')).allowed).toBe(true)
  await quotas({ 'x-ip': '192.0.2.2' })
})

test('Without Redis the answer is 503, because the numbers would be wrong.', async () => {
  const sluice = createSluice({
    clientAddress: () => '192.0.2.1',
    policies: [policy('per-ip')],
    use: [quota()],
  })
  const env = { UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:9', UPSTASH_REDIS_REST_TOKEN: 'a' }
  const { response } = await sluice.check(new Request('https://a.test/_sluice/quota'), { env })
  expect(response!.status).toBe(503)
})

test('Pages of other origins read the answer as CORS is configured, also with credentials in a header.', async () => {
  const cors = { origins: 'https://app.test' }
  const { send } = limiter([policy('per-ip')], { cors })
  const origin = 'https://app.test'
  const { response } = await send('/_sluice/quota', { origin })
  expect(response!.headers.get('access-control-allow-origin')).toBe(origin)
  const other = await send('/_sluice/quota', { origin: 'https://evil.test' })
  expect(other.response!.headers.get('access-control-allow-origin')).toBeNull()
  const asked = { origin, 'access-control-request-headers': 'authorization' }
  const preflight = await send('/_sluice/quota', asked, 'OPTIONS')
  expect(preflight.response!.status).toBe(204)
  expect(preflight.response!.headers.get('access-control-allow-headers')).toBe('authorization')
  expect(preflight.response!.headers.get('access-control-allow-origin')).toBe(origin)
})

test('Other methods are refused, and another path is the path of the app.', async () => {
  const { send } = limiter([policy('per-ip')], { use: [quota({ path: '/_sluice/limits' })] })
  expect((await send('/_sluice/limits', {}, 'POST')).response!.status).toBe(405)
  expect((await send('/_sluice/limits')).response!.status).toBe(200)
  expect((await send('/_sluice/quota')).allowed).toBe(true)
})

test('The gateway has the endpoint only with the feature.', async () => {
  const fetch = (use: ConfigOptions['use']) =>
    createGateway({
      origin: 'https://origin.test',
      clientAddress: 'cloudflare',
      namespace: `quota-${++namespaces}`,
      deadline: '10s',
      policies: [policy('per-ip')],
      use,
    }).request('/_sluice/quota', { headers: { 'cf-connecting-ip': '192.0.2.1' } }, database.env, {
      waitUntil: () => {},
      passThroughOnException: () => {},
      props: {},
    })
  expect((await fetch([])).status).toBe(404)
  const response = await fetch([quota()])
  expect([response.status, ((await response.json()) as CallerQuotas).quotas[0]!.remaining]).toEqual(
    [200, 10],
  )
})

test.each([
  [{ path: '/quota' }, 'quota.path: a path like "/_sluice/quota"', 'path'],
  [{ path: '/_sluice/v1/quota' }, '', 'path'],
  [{ path: '/_sluice/health' }, '', 'path'],
  [{ limit: 0 }, '', 'limit'],
  [{ window: 'day' }, '', 'window'],
])('The options %j are refused.', (options, _, field) => {
  expect(() => quota(options as never)).toThrow(field)
})

test('A policy cannot have the name of the limit on the endpoint. Without quota() it can.', () => {
  const policies = [policy('per-ip'), policy('sluice-quota')]
  expect(() => parseConfig({ policies, use: [quota({ path: '/_sluice/left' })] })).toThrow(
    'policies[1].name: expected another name than "sluice-quota", which is that of the limit on /_sluice/left, got "sluice-quota"',
  )
  expect(parseConfig({ policies }).policies).toHaveLength(2)
})

describe('The conditions of a policy, for a sender', () => {
  const senders = (match: object) => {
    const config = parseConfig({ policies: [policy('a', { match })] })
    return forSenders(config).policies[0]!.match
  }
  const parsed = (match: object) =>
    parseConfig({ policies: [policy('a', { match })] }).policies[0]!.match

  test.each([
    [{ path: '/a', method: 'POST', query: { a: '1' } }, {}],
    [
      { path: '/a', country: 'DE', ip: '192.0.2.0/24' },
      { country: 'DE', ip: '192.0.2.0/24' },
    ],
    [{ header: { 'x-plan': 'free' } }, { header: { 'x-plan': 'free' } }],
    [{ not: { path: '/health' } }, {}],
    [{ not: [{ path: '/a' }, { country: 'DE' }] }, { not: { country: 'DE' } }],
    [{ not: { not: { path: '/a' }, country: 'DE' } }, {}],
  ])('%j is %j.', (match, expected) => {
    const known = (condition: object) => JSON.parse(JSON.stringify(condition))
    expect(known(senders(match))).toEqual(known(parsed(expected)))
  })

  test('A plan by a part of the path depends on the request.', () => {
    const plan = { plan: 'path:plan', limits: { a: 1 }, match: { path: '/:plan' } }
    const { policies } = parseConfig({ policies: [policy('a', plan), policy('b')] })
    expect(policies.map((one: Policy) => dependsOnRequest(one))).toEqual([true, false])
  })
})
