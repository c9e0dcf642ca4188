/** The protection of the decision API: tokens, sizes and schemas. Also its answers without Redis. */
import { describe, expect, test } from 'vitest'
import type { ConfigOptions } from '../../../src/core/config/options.ts'
import { type Answer, API_TOKEN, apiOf, OPERATE, useApi } from '../../support/api-stack.ts'

const policy = { name: 'per-ip', limit: 1000, window: '1h' } as const
const config: ConfigOptions = { policies: [policy] }
const ask = { policy: 'per-ip', key: '203.0.113.1' }
/** A database that cannot be reached. */
const unreachable = { UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:9' }

const endpoints: [path: string, method: string, body: object | undefined, scopes: string[]][] = [
  ['/decide', 'POST', ask, ['api']],
  ['/refund', 'POST', ask, ['api', 'operate']],
  ['/policies', 'GET', undefined, ['operate']],
  ...['peek', 'reset', 'try'].map((operation): (typeof endpoints)[number] => [
    `/policies/per-ip/${operation}`,
    'POST',
    operation === 'try' ? { request: { url: 'https://a.example/' } } : { key: '203.0.113.1' },
    ['operate'],
  ]),
]

describe('the decision API without a token in the environment', () => {
  const { start } = useApi(config)
  test.each([
    ['no token', {}, ['/decide', '/refund', '/policies', '/auth', '/openapi.json']],
    [
      'tokens that are too short',
      { SLUICE_API_TOKEN: 'too-short', SLUICE_OPERATE_TOKEN: '' },
      ['/decide', '/refund', '/policies', '/openapi.json'],
    ],
    [
      'a token of the scope api',
      { SLUICE_API_TOKEN: API_TOKEN },
      ['/policies', '/policies/per-ip/reset'],
    ],
    [
      'a token of the scope operate',
      { SLUICE_OPERATE_TOKEN: OPERATE },
      ['/decide', '/auth', '/auth/nginx'],
    ],
  ])(
    'Endpoints of other scopes are a 404 if the environment has %s.',
    async (_, tokens, absent) => {
      const env = { ...unreachable, SLUICE_API_TOKEN: '', SLUICE_OPERATE_TOKEN: '', ...tokens }
      const { call } = apiOf(start(config, { env }).fetch)
      for (const path of absent) {
        for (const token of [null, 'too-short', API_TOKEN, OPERATE]) {
          const { status, headers } = await call(path, path === '/openapi.json' ? undefined : {}, {
            token,
            headers: { 'Sluice-Token': token ?? '' },
          })
          expect([path, status, headers.get('content-type')]).toEqual([
            path,
            404,
            'application/problem+json',
          ])
        }
      }
    },
  )
})

describe('the decision API', () => {
  const [second, operator] = ['a-second-api-token', 'a-second-operate-token']
  const api = useApi(
    { ...config, cors: { origins: 'https://app.example.com' } },
    {
      SLUICE_API_TOKEN: `${API_TOKEN} ${second}`,
      SLUICE_OPERATE_TOKEN: `${OPERATE},\n${operator}`,
    },
  )

  test.each(endpoints)(
    'The endpoint %s accepts the tokens of its scopes and no others.',
    async (path, method, body, scopes) => {
      const call = (token: string | null, headers = {}) =>
        api.call(path, body, { token, headers, method })
      for (const [scope, tokens] of Object.entries({
        api: [API_TOKEN, second],
        operate: [OPERATE, operator],
      })) {
        for (const token of tokens) {
          const expected = scopes.includes(scope) ? 200 : 403
          expect((await call(token)).status).toBe(expected)
          expect((await call(null, { 'Sluice-Token': token })).status).toBe(expected)
          expect((await call('wrong', { 'Sluice-Token': token })).status).toBe(expected)
        }
      }
      for (const token of [
        null,
        'wrong',
        `${API_TOKEN} ${second}`,
        API_TOKEN.slice(0, -1),
        `${API_TOKEN}x`,
        API_TOKEN.toUpperCase(),
      ]) {
        const { status, headers } = await call(token)
        expect([token, status, headers.get('www-authenticate')]).toEqual([token, 401, 'Bearer'])
      }
      expect((await call(API_TOKEN, { 'Sluice-Token': 'wrong' })).status).toBe(401)
    },
  )

  test.each(endpoints)(
    'The endpoint %s answers other methods than %s with 405 and Allow.',
    async (path, method) => {
      for (const other of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD'].filter(
        (name) => name !== method,
      )) {
        const { status, headers } = await api.call(path, undefined, {
          method: other,
          token: OPERATE,
        })
        expect([other, status, headers.get('allow')]).toEqual([other, 405, method])
      }
    },
  )

  test.each([
    '/',
    '',
    '/decide/',
    '/nothing',
    '/policies/',
    '/policies/per-ip',
    '/policies/per-ip/grow',
    '/auth/caddy',
    '/auth/nginx/x',
    '/../v2/decide',
  ])('The path %j is a 404, or the endpoint that it resolves to.', async (path) => {
    const { status } = await api.call(path, {}, { token: null })
    expect(status).toBe(
      path === '/decide/' || path === '/policies/' ? (path === '/decide/' ? 401 : 405) : 404,
    )
  })

  test('An operation on an unknown policy is a 404.', async () => {
    const { status } = await api.operate('none', 'peek', { key: 'x' })
    expect(status).toBe(404)
  })

  const problem = (answer: Answer<Record<string, unknown>>) => {
    expect(answer.headers.get('content-type')).toBe('application/problem+json')
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(answer.body).toMatchObject({ status: answer.status, title: expect.any(String) })
    return [answer.status, answer.body.detail]
  }
  const nested = (depth: number) =>
    `{"policy":"per-ip","key":${'['.repeat(depth)}${']'.repeat(depth)}}`
  test.each([
    ['', 400, 'The body is empty. Send JSON.'],
    ['{"policy"', 400, 'The body is not valid JSON.'],
    ["{'policy':1}", 400, 'The body is not valid JSON.'],
    ['[NaN]', 400, 'The body is not valid JSON.'],
    [nested(8), 400, 'The body has more than 8 levels.'],
    [nested(30_000), 400, 'The body has more than 8 levels.'],
    ['['.repeat(60_000), 400, 'The body is not valid JSON.'],
    [
      '{"policy":"per-ip","key":"203.0.113.1","cost":50,"cost":0}',
      400,
      'The body has two members "cost" in one object.',
    ],
    [
      '{"request":{"url":"https://a.example/","ur\\u006c":"https://b.example/"}}',
      400,
      'The body has two members "url" in one object.',
    ],
    [`"${'\\"'.repeat(32_000)}`, 400, 'The body is not valid JSON.'],
    [`"${'a'.repeat(65 * 1024)}"`, 413, 'The body is larger than 64 KiB.'],
    [`${' '.repeat(64 * 1024)}{}`, 413, 'The body is larger than 64 KiB.'],
  ])('The body that begins with %.20j is refused with %d.', async (body, status, detail) => {
    expect(problem(await api.call('/decide', body))).toEqual([status, detail])
  })

  const asking = (field: string) => `{"policy":"per-ip","key":"203.0.113.1",${field}}`
  const describing = (field: string) => `{"request":{"url":"https://a.example/",${field}}}`
  test.each([
    [asking('"burst":7'), 'burst', 'one of the fields'],
    [asking('"__proto__":{"cost":0}'), '__proto__', 'one of the fields'],
    [asking('"constructor":1'), 'constructor', 'one of the fields'],
    [asking('"cost":-1'), 'cost', 'a whole number'],
    [asking('"cost":0.5'), 'cost', 'a whole number'],
    [asking('"cost":1e300'), 'cost', 'a whole number'],
    [asking('"cost":"1"'), 'cost', 'a whole number'],
    [asking('"mode":"refund"'), 'mode', 'take or peek'],
    ['{"policy":"per-ip"}', 'key', 'a text'],
    ['{"policy":"per-ip","key":12345678901234567891}', 'key', 'a text'],
    ['{"policy":"per-ip","key":[1e999]}', 'key[0]', 'a text'],
    ['{"request":{"ip":"203.0.113.1"}}', 'request.url', 'an absolute http'],
    ['{"request":{"url":"/login"}}', 'request.url', 'an absolute http'],
    ['{"request":{"url":"file:///etc/passwd"}}', 'request.url', 'an absolute http'],
    [describing('"method":"CONNECT"'), 'request.method', 'a method'],
    [describing('"headers":{"a b":"c"}'), 'request.headers.a b', 'a field name'],
    [describing('"headers":{"a":"b\\r\\nc: d"}'), 'request.headers.a', 'a value'],
    [describing('"ip":"203.0.113.300"'), 'request.ip', 'an IPv4'],
    [describing('"ip":"010.0.0.1"'), 'request.ip', 'an IPv4'],
    [describing('"ip":"10"'), 'request.ip', 'an IPv4'],
    ['[]', 'body', '1 to 100'],
    ['7', 'body', 'an object'],
    ['null', 'body', 'an object'],
  ])('The body %s is refused, and the error names %s.', async (body, path, expected) => {
    const answer = await api.call<Record<string, unknown>>('/decide', body)
    expect(problem(answer)[0]).toBe(422)
    expect(answer.body.errors).toMatchObject([
      { path, expected: expect.stringContaining(expected) },
    ])
  })

  test('A list of 100 asks is accepted, and a list of 101 is refused.', async () => {
    expect((await api.decideEach(Array(100).fill({ ...ask, mode: 'peek' }))).status).toBe(200)
    expect((await api.decideEach(Array(101).fill(ask))).status).toBe(422)
  })

  test('A body that is not UTF-8 is refused.', async () => {
    const { status } = await api.fetch('/_sluice/v1/decide', {
      method: 'POST',
      body: new Uint8Array([0x22, 0xff, 0xfe, 0x22]),
      headers: { 'Sluice-Token': API_TOKEN },
    })
    expect(status).toBe(400)
  })

  test('Pages of the origins in cors may read answers, and their preflights are answered.', async () => {
    const headers = { Origin: 'https://app.example.com', 'Access-Control-Request-Method': 'POST' }
    const preflight = await api.call('/decide', undefined, {
      method: 'OPTIONS',
      token: null,
      headers,
    })
    expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).toEqual([
      204,
      'https://app.example.com',
    ])
    expect(preflight.headers.get('access-control-allow-headers')).toContain('Authorization')
    const { headers: answered } = await api.decide(ask, { headers })
    expect(answered.get('access-control-allow-origin')).toBe('https://app.example.com')
    const other = await api.decide(ask, { headers: { Origin: 'https://evil.example' } })
    expect(other.headers.has('access-control-allow-origin')).toBe(false)
  })

  test('The OpenAPI description is served without a token.', async () => {
    const { status, body } = await api.call('/openapi.json', undefined, { token: null })
    expect([status, body.openapi]).toEqual([200, expect.stringMatching(/^3\.1\./)])
    const other = await api.call('/openapi.json', {}, { token: null })
    expect([other.status, other.headers.get('allow')]).toEqual([405, 'GET'])
  })

  test('The log contains no tokens, keys or bodies.', async () => {
    await api.call(
      '/decide',
      { policy: 'per-ip', key: '203.0.113.99' },
      { token: 'a-wrong-token-of-somebody' },
    )
    const logs = api.logs.join('\n')
    expect(logs).toContain('api-refused')
    expect(logs).not.toMatch(/203\.0\.113|token-of-somebody|a-api-token/)
  })
})

describe('the decision API without Redis', () => {
  const api = useApi(
    {
      deadline: '200ms',
      policies: [
        { ...policy, onStoreError: 'allow', match: { path: '/open' } },
        { ...policy, name: 'closed', onStoreError: 'deny', match: { path: '/closed' } },
        { ...policy, name: 'local', limit: 1, onStoreError: 'local', match: { path: '/local' } },
      ],
    },
    unreachable,
  )
  const request = (path: string) => ({
    request: { url: `https://a.example${path}`, ip: '203.0.113.1' },
  })

  test('Without Redis, onStoreError of each policy decides single asks and lists.', async () => {
    const open = await api.decide(request('/open'))
    expect([open.status, open.body]).toEqual([
      200,
      { allowed: true, reason: 'store-error', fallback: 'allow', retryAfterMs: 0, limits: [] },
    ])
    const closed = await api.decide(request('/closed'))
    expect([closed.status, closed.body.fallback]).toEqual([429, 'deny'])
    const { status, body } = await api.decideEach(
      ['/open', '/closed', '/local', '/local', '/none'].map(request),
      { headers: { 'Idempotency-Key': 'x' } },
    )
    expect([status, body.map(({ allowed, fallback }) => [allowed, fallback])]).toEqual([
      200,
      [
        [true, 'allow'],
        [false, 'deny'],
        [true, 'local'],
        [false, 'local'],
        [true, undefined],
      ],
    ])
  })

  test('Without Redis, forward-auth uses onStoreError, and Envoy gets no 5xx.', async () => {
    const fields = (uri: string) => ({
      'Sluice-Token': API_TOKEN,
      'X-Forwarded-Method': 'GET',
      'X-Forwarded-Uri': uri,
    })
    const ask = async (path: string, uri: string) => {
      const { status, headers } = await api.call(path, undefined, {
        token: null,
        headers: fields(uri),
      })
      return [status, headers.get('sluice-status')]
    }
    expect(await ask('/auth', '/open')).toEqual([200, null])
    expect(await ask('/auth', '/closed')).toEqual([503, '503'])
    expect(await ask('/auth/nginx', '/closed')).toEqual([403, '503'])
    expect(await ask('/auth/envoy/closed', '/')).toEqual([403, '503'])
  })

  test('Without Redis, operations and refunds are a 503, and the list of policies names the fallbacks and the cause.', async () => {
    const reset = () =>
      api.operate<Record<string, unknown>>('closed', 'reset', { key: '203.0.113.1' })
    const { status, body } = await reset()
    expect([status, body.code]).toEqual([503, expect.stringMatching(/unreachable|circuit-open/)])
    await Promise.all(Array.from({ length: 5 }, reset)) // opens the circuit
    expect((await api.call('/refund', { policy: 'closed', key: '203.0.113.1' })).status).toBe(503)
    const list = await api.call<{ policies: { decidedBy: string }[]; store: object }>(
      '/policies',
      undefined,
      { token: OPERATE },
    )
    expect(list.body.store).toMatchObject({ status: 'failing', code: 'unreachable' })
    expect(list.body.policies.map(({ decidedBy }) => decidedBy)).toEqual(['allow', 'deny', 'local'])
  })
})
