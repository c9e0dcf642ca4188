/** What keeps the gate from being anybody's: tokens, sizes, shapes; and what it does without Redis. */
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ConfigOptions } from '../../../src/config/options.ts'
import { type Answer, GATE, type Gate, OPERATE, startGate } from '../../support/api-stack.ts'

const policy = { name: 'per-ip', limit: 1000, window: '1h' } as const
const config: ConfigOptions = { policies: [policy] }
const ask = { policy: 'per-ip', key: '203.0.113.1' }

const endpoints: [path: string, method: string, body: object | undefined, scopes: string[]][] = [
  ['/decide', 'POST', ask, ['gate']],
  ['/give-back', 'POST', ask, ['gate', 'operate']],
  ['/policies', 'GET', undefined, ['operate']],
  ...['look', 'reset', 'try'].map((operation): (typeof endpoints)[number] => [
    `/policies/per-ip/${operation}`,
    'POST',
    operation === 'try' ? { request: { url: 'https://a.example/' } } : { key: '203.0.113.1' },
    ['operate'],
  ]),
]

describe('without a token in the environment', () => {
  test.each([
    ['none', {}, ['/decide', '/give-back', '/policies', '/auth', '/openapi.json']],
    [
      'only ones that are too short',
      { SLUICE_GATE_TOKEN: 'too-short', SLUICE_OPERATE_TOKEN: '' },
      ['/decide', '/give-back', '/policies', '/openapi.json'],
    ],
    ['one of the gate', { SLUICE_GATE_TOKEN: GATE }, ['/policies', '/policies/per-ip/reset']],
    ['one of operators', { SLUICE_OPERATE_TOKEN: OPERATE }, ['/decide', '/auth', '/auth/nginx']],
  ])('%s, what it would open is not there', async (_, tokens, absent) => {
    const env = { SLUICE_GATE_TOKEN: '', SLUICE_OPERATE_TOKEN: '', ...tokens }
    const gate = await startGate(config, env)
    try {
      for (const path of absent) {
        for (const token of [null, 'too-short', GATE, OPERATE]) {
          const { status, headers } = await gate.call(
            path,
            path === '/openapi.json' ? undefined : {},
            { token, headers: { 'Sluice-Token': token ?? '' } },
          )
          expect([path, status, headers.get('content-type')]).toEqual([
            path,
            404,
            'application/problem+json',
          ])
        }
      }
    } finally {
      await gate.stop()
    }
  })
})

describe('the gate', () => {
  let gate: Gate
  const [second, operator] = ['a-second-gate-token', 'a-second-operate-token']
  beforeAll(async () => {
    gate = await startGate(
      { ...config, cors: { origins: 'https://app.example.com' } },
      {
        SLUICE_GATE_TOKEN: `${GATE} ${second}`,
        SLUICE_OPERATE_TOKEN: `${OPERATE},\n${operator}`,
      },
    )
  })
  afterAll(() => gate?.stop())

  test.each(endpoints)(
    '%s opens to the tokens of its scope and no other',
    async (path, method, body, scopes) => {
      const call = (token: string | null, headers = {}) =>
        gate.call(path, body, { token, headers, method })
      for (const [scope, tokens] of Object.entries({
        gate: [GATE, second],
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
        `${GATE} ${second}`,
        GATE.slice(0, -1),
        `${GATE}x`,
        GATE.toUpperCase(),
      ]) {
        const { status, headers } = await call(token)
        expect([token, status, headers.get('www-authenticate')]).toEqual([token, 401, 'Bearer'])
      }
      expect((await call(GATE, { 'Sluice-Token': 'wrong' })).status).toBe(401)
    },
  )

  test.each(endpoints)('%s says which methods it has', async (path, method) => {
    for (const other of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD'].filter(
      (name) => name !== method,
    )) {
      const { status, headers } = await gate.call(path, undefined, {
        method: other,
        token: OPERATE,
      })
      expect([other, status, headers.get('allow')]).toEqual([other, 405, method])
    }
  })

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
  ])('%j is not there, or is what it resolves to', async (path) => {
    const { status } = await gate.call(path, {}, { token: null })
    expect(status).toBe(
      path === '/decide/' || path === '/policies/' ? (path === '/decide/' ? 401 : 405) : 404,
    )
  })

  test('an unknown policy is a 404 to operators', async () => {
    const { status } = await gate.operate('none', 'look', { key: 'x' })
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
    ['', 400, 'There is no body: JSON is expected.'],
    ['{"policy"', 400, 'The body is no JSON.'],
    ["{'policy':1}", 400, 'The body is no JSON.'],
    ['[NaN]', 400, 'The body is no JSON.'],
    [nested(8), 400, 'The body is nested deeper than 8.'],
    [nested(30_000), 400, 'The body is nested deeper than 8.'],
    ['['.repeat(60_000), 400, 'The body is nested deeper than 8.'],
    [`"${'\\"'.repeat(32_000)}`, 400, 'The body is no JSON.'],
    [`"${'a'.repeat(65 * 1024)}"`, 413, 'The body is larger than 64 KiB.'],
    [`${' '.repeat(64 * 1024)}{}`, 413, 'The body is larger than 64 KiB.'],
  ])('turns away %.20j…: %d', async (body, status, detail) => {
    expect(problem(await gate.call('/decide', body))).toEqual([status, detail])
  })

  test.each([
    ['{"policy":"per-ip","key":"203.0.113.1","burst":7}', 'burst', 'one of the fields'],
    [
      '{"policy":"per-ip","key":"203.0.113.1","__proto__":{"cost":0}}',
      '__proto__',
      'one of the fields',
    ],
    ['{"policy":"per-ip","key":"203.0.113.1","constructor":1}', 'constructor', 'one of the fields'],
    ['{"policy":"per-ip","key":"203.0.113.1","cost":-1}', 'cost', 'a whole number'],
    ['{"policy":"per-ip","key":"203.0.113.1","cost":0.5}', 'cost', 'a whole number'],
    ['{"policy":"per-ip","key":"203.0.113.1","cost":1e300}', 'cost', 'a whole number'],
    ['{"policy":"per-ip","key":"203.0.113.1","cost":"1"}', 'cost', 'a whole number'],
    ['{"policy":"per-ip","key":"203.0.113.1","mode":"give-back"}', 'mode', 'take or look'],
    ['{"policy":"per-ip"}', 'key', 'a text'],
    ['{"policy":"per-ip","key":12345678901234567891}', 'key', 'a text'],
    ['{"policy":"per-ip","key":[1e999]}', 'key[0]', 'a text'],
    ['{"request":{"ip":"203.0.113.1"}}', 'request.url', 'an absolute http'],
    ['{"request":{"url":"/login"}}', 'request.url', 'an absolute http'],
    ['{"request":{"url":"file:///etc/passwd"}}', 'request.url', 'an absolute http'],
    ['{"request":{"url":"https://a.example/","method":"CONNECT"}}', 'request.method', 'a method'],
    [
      '{"request":{"url":"https://a.example/","headers":{"a b":"c"}}}',
      'request.headers.a b',
      'a field name',
    ],
    [
      '{"request":{"url":"https://a.example/","headers":{"a":"b\\r\\nc: d"}}}',
      'request.headers.a',
      'a value',
    ],
    ['{"request":{"url":"https://a.example/","ip":"203.0.113.300"}}', 'request.ip', 'an IPv4'],
    ['{"request":{"url":"https://a.example/","ip":"010.0.0.1"}}', 'request.ip', 'an IPv4'],
    ['{"request":{"url":"https://a.example/","ip":"10"}}', 'request.ip', 'an IPv4'],
    ['[]', 'body', '1 to 100'],
    ['7', 'body', 'an object'],
    ['null', 'body', 'an object'],
  ])('names what is wrong in %s', async (body, path, expected) => {
    const answer = await gate.call<Record<string, unknown>>('/decide', body)
    expect(problem(answer)[0]).toBe(422)
    expect(answer.body.errors).toMatchObject([
      { path, expected: expect.stringContaining(expected) },
    ])
  })

  test('takes a list of 100 and not of 101', async () => {
    expect((await gate.decideEach(Array(100).fill({ ...ask, mode: 'look' }))).status).toBe(200)
    expect((await gate.decideEach(Array(101).fill(ask))).status).toBe(422)
  })

  test('turns away a body that is no UTF-8, and one that never ends', async () => {
    const send = (body: BodyInit) =>
      fetch(`${gate.stack.url}/_sluice/v1/decide`, {
        method: 'POST',
        body,
        headers: { 'Sluice-Token': GATE },
        duplex: 'half',
      } as RequestInit)
    expect((await send(new Uint8Array([0x22, 0xff, 0xfe, 0x22]))).status).toBe(400)
    const { hostname, port } = new URL(gate.stack.worker.directUrl)
    const socket = connect(Number(port), hostname)
    let answer = ''
    socket.on('data', (data) => (answer += data))
    socket.on('error', () => {})
    socket.write(
      `POST /_sluice/v1/decide HTTP/1.1\r\nHost: a\r\nSluice-Token: ${GATE}\r\nTransfer-Encoding: chunked\r\n\r\n`,
    )
    const chunk = `4000\r\n${'a'.repeat(0x4000)}\r\n`
    for (let sent = 0; sent < 500 && !answer; sent++) {
      socket.write(chunk)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    socket.destroy()
    expect(answer.slice(0, 13)).toBe('HTTP/1.1 413 ')
  })

  test('answers pages of the origins that cors names, and their preflights', async () => {
    const headers = { Origin: 'https://app.example.com', 'Access-Control-Request-Method': 'POST' }
    const preflight = await gate.call('/decide', undefined, {
      method: 'OPTIONS',
      token: null,
      headers,
    })
    expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).toEqual([
      204,
      'https://app.example.com',
    ])
    expect(preflight.headers.get('access-control-allow-headers')).toContain('Authorization')
    const { headers: told } = await gate.decide(ask, { headers })
    expect(told.get('access-control-allow-origin')).toBe('https://app.example.com')
    const other = await gate.decide(ask, { headers: { Origin: 'https://evil.example' } })
    expect(other.headers.has('access-control-allow-origin')).toBe(false)
  })

  test('serves its description', async () => {
    const { status, body } = await gate.call('/openapi.json', undefined, { token: null })
    expect([status, body.openapi]).toEqual([200, expect.stringMatching(/^3\.1\./)])
    const other = await gate.call('/openapi.json', {}, { token: null })
    expect([other.status, other.headers.get('allow')]).toEqual([405, 'GET'])
  })

  test('logs nothing of tokens, keys or bodies', async () => {
    await gate.call(
      '/decide',
      { policy: 'per-ip', key: '203.0.113.99' },
      { token: 'a-wrong-token-of-somebody' },
    )
    const logs = gate.stack.worker.logs.join('\n')
    expect(logs).toContain('gate-refused')
    expect(logs).not.toMatch(/203\.0\.113|token-of-somebody|a-gate-token/)
  })
})

describe('callers with a limit of their own', () => {
  let gate: Gate
  const second = 'a-second-gate-token'
  beforeAll(async () => {
    gate = await startGate(
      { ...config, gate: { callers: { limit: 3, window: '1h', algorithm: 'fixed-window' } } },
      { SLUICE_GATE_TOKEN: `${GATE} ${second}` },
    )
  })
  afterAll(() => gate?.stop())

  test('are told apart by token, and a refused call decides nothing', async () => {
    const statuses = []
    for (let time = 0; time < 5; time++) statuses.push((await gate.decide(ask)).status)
    expect(statuses).toEqual([200, 200, 200, 429, 429])
    const refused = await gate.call('/decide', ask)
    expect(refused.headers.get('content-type')).toBe('application/problem+json')
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(3000)
    const { status, body } = await gate.decide({ ...ask, mode: 'look' }, { token: second })
    expect([status, body.limits[0]!.remaining]).toEqual([200, 997])
    const proxied = { 'Sluice-Token': GATE, 'X-Forwarded-Method': 'GET', 'X-Forwarded-Uri': '/' }
    expect((await gate.call('/auth', undefined, { token: null, headers: proxied })).status).toBe(
      200,
    )
  })
})

describe('without Redis', () => {
  let gate: Gate
  beforeAll(async () => {
    gate = await startGate(
      {
        deadline: '200ms',
        gate: { callers: { limit: 100, window: '1h' } },
        policies: [
          { ...policy, onStoreError: 'allow', match: { path: '/open' } },
          { ...policy, name: 'closed', onStoreError: 'deny', match: { path: '/closed' } },
          { ...policy, name: 'local', limit: 1, onStoreError: 'local', match: { path: '/local' } },
        ],
      },
      { UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:9' },
    )
  })
  afterAll(() => gate?.stop())
  const request = (path: string) => ({
    request: { url: `https://a.example${path}`, ip: '203.0.113.1' },
  })

  test('each policy says whether its requests pass, one by one and in lists', async () => {
    const open = await gate.decide(request('/open'))
    expect([open.status, open.body]).toEqual([
      200,
      { allowed: true, reason: 'store-error', degraded: 'allow', retryAfterMs: 0, limits: [] },
    ])
    const closed = await gate.decide(request('/closed'))
    expect([closed.status, closed.body.degraded]).toEqual([429, 'deny'])
    const { status, body } = await gate.decideEach(
      ['/open', '/closed', '/local', '/local', '/none'].map(request),
      { headers: { 'Idempotency-Key': 'x' } },
    )
    expect([status, body.map(({ allowed, degraded }) => [allowed, degraded])]).toEqual([
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

  test('forward-auth answers the same, to Envoy without a 5xx', async () => {
    const told = (uri: string) => ({
      'Sluice-Token': GATE,
      'X-Forwarded-Method': 'GET',
      'X-Forwarded-Uri': uri,
    })
    const ask = async (path: string, uri: string) => {
      const { status, headers } = await gate.call(path, undefined, {
        token: null,
        headers: told(uri),
      })
      return [status, headers.get('sluice-status')]
    }
    expect(await ask('/auth', '/open')).toEqual([200, null])
    expect(await ask('/auth', '/closed')).toEqual([503, '503'])
    expect(await ask('/auth/nginx', '/closed')).toEqual([403, '503'])
    expect(await ask('/auth/envoy/closed', '/')).toEqual([403, '503'])
  })

  test('operators are told so', async () => {
    const { status, body } = await gate.operate<Record<string, unknown>>('closed', 'reset', {
      key: '203.0.113.1',
    })
    expect([status, body.code]).toEqual([503, expect.stringMatching(/unreachable|circuit-open/)])
    expect((await gate.call('/give-back', { policy: 'closed', key: '203.0.113.1' })).status).toBe(
      503,
    )
    const list = await gate.call<{ policies: { decidedBy: string }[]; store: object }>(
      '/policies',
      undefined,
      { token: OPERATE },
    )
    expect(list.body.store).toMatchObject({ status: 'failing' })
    expect(list.body.policies.map(({ decidedBy }) => decidedBy)).toEqual(['allow', 'deny', 'local'])
  })
})
