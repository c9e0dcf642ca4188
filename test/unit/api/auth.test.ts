/** Forward-auth, with calls like those of reverse proxies. proxies.test.ts runs real proxies. */
import { parseList } from 'structured-headers'
import { describe, expect, test } from 'vitest'
import { FIELD, signed } from '../../../src/features/verify/field.ts'
import { API_TOKEN, useApi } from '../../support/api-stack.ts'

const VERIFY_TOKEN = 'a-token-to-verify-with'
const policy = { limit: 2, window: '1h', algorithm: 'fixed-window' } as const
const api = useApi(
  {
    deny: { name: 'abuse', ip: '192.0.2.66' },
    policies: [
      {
        ...policy,
        name: 'shop',
        match: { host: 'shop.example.com', method: 'POST', path: '/cart/*' },
      },
      { ...policy, name: 'per-ip', limit: 100 },
      { ...policy, name: 'per-key', key: 'header:x-key', match: { path: '/keyed' } },
      { ...policy, name: 'by-query', key: 'query:user', match: { path: '/query' } },
      { ...policy, name: 'ghost', limit: 1, mode: 'shadow', match: { path: '/ghost' } },
      { ...policy, name: 'priced', cost: { header: 'sluice-cost' }, match: { path: '/priced' } },
      { ...policy, name: 'by-country', key: 'country', match: { path: '/country' } },
    ],
  },
  { SLUICE_VERIFY_TOKEN: VERIFY_TOKEN },
)

let clients = 0
const newIp = () => `198.51.100.${++clients}`
const auth = (
  fields: Record<string, string>,
  path = '',
  { method = 'GET', token = API_TOKEN as string | null } = {},
) =>
  api.call<Record<string, unknown>>(`/auth${path}`, undefined, {
    token: null,
    method,
    headers: { ...(token !== null && { 'Sluice-Token': token }), ...fields },
  })
const forwarded = (ip: string, uri: string, method = 'GET', host = 'shop.example.com') => ({
  'X-Forwarded-For': ip,
  'X-Forwarded-Uri': uri,
  'X-Forwarded-Method': method,
  'X-Forwarded-Host': host,
  'X-Forwarded-Proto': 'https',
})

const cart = (ip: string) => forwarded(ip, '/cart/add?x=1', 'POST')

test('Forward-auth allows requests, then refuses with the fields and the body for the client.', async () => {
  const ip = newIp()
  for (const remaining of [1, 0]) {
    const { status, headers, body } = await auth(cart(ip))
    expect([status, body]).toEqual([200, ''])
    const [name, fields] = parseList(headers.get('ratelimit')!)[0]!
    expect([name, [...fields.keys()], fields.get('r')]).toEqual(['shop', ['r', 't'], remaining])
    expect(fields.get('t')).toBeGreaterThanOrEqual(3590)
    expect(fields.get('t')).toBeLessThanOrEqual(3600)
  }
  const { status, headers, body } = await auth(cart(ip))
  expect([status, body['violated-policies']]).toEqual([429, ['shop']])
  expect(headers.get('sluice-status')).toBe('429')
  expect(headers.get('content-type')).toBe('application/problem+json')
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(3500)
  expect(headers.get('ratelimit-policy')).toContain('"shop";q=2;w=3600')
})

test('Forward-auth and the endpoint /decide share quotas.', async () => {
  const ip = newIp()
  await auth(cart(ip))
  const url = 'https://shop.example.com/cart/y'
  const { body } = await api.decide({ request: { url, ip, method: 'POST' } })
  expect(body.limits[0]!.remaining).toBe(0)
})

test.each(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'])(
  'Forward-auth accepts calls with the method %s.',
  async (method) => {
    const { status, headers } = await auth(forwarded(newIp(), '/'), '', { method })
    expect([status, headers.has('ratelimit')]).toEqual([200, true])
  },
)

test('For nginx, every refusal is a 403 with the original status in Sluice-Status.', async () => {
  const ip = newIp()
  for (const status of [200, 200, 403]) {
    const answer = await auth(cart(ip), '/nginx')
    expect([answer.status, answer.headers.get('sluice-status')]).toEqual([
      status,
      status === 403 ? '429' : null,
    ])
    if (status === 403) expect(answer.headers.has('retry-after')).toBe(true)
  }
  const denied = await auth(cart('192.0.2.66'), '/nginx')
  expect([denied.status, denied.headers.get('sluice-status')]).toEqual([403, '403'])
})

test('For Envoy, the request has the appended path, and the method and host of the call.', async () => {
  const ip = newIp()
  const ask = (method: string) =>
    auth(
      { 'X-Forwarded-For': ip, 'X-Forwarded-Uri': '/else', 'X-Forwarded-Method': 'PUT' },
      '/envoy/query?user=eve',
      { method },
    )
  for (const status of [200, 200, 429]) expect((await ask('GET')).status).toBe(status)
  expect((await auth({ 'X-Forwarded-For': ip }, '/envoy')).status).toBe(200)
})

test.each([
  ['/cart/..%2F..%2F..%2F..%2Fhealth', '"shop"'],
  ['/cart/..%2F..%2F..%2F..%2F..%2F', '"shop"'],
  ['/cart/..;/..;/..;/..;/..;/', '"shop"'],
  ['/..%2Fnginx', '"per-ip"'],
  ['/%2E%2E%5C..%5c..%5C..%5C', '"per-ip"'],
])('The client path %s does not leave the prefix of Envoy.', async (path, policies) => {
  const fields = { 'X-Forwarded-For': newIp(), 'X-Forwarded-Host': 'shop.example.com' }
  const { status, headers } = await auth(fields, `/envoy${path}`, { method: 'POST' })
  expect([status, headers.get('ratelimit-policy')]).toEqual([
    200,
    expect.stringContaining(policies),
  ])
})

test.each([
  '/_sluice//v1/auth/envoy/cart/',
  '/%5Fsluice/v1/auth/envoy/cart/',
  '/_sluice/v1/auth/envoy;x/',
])('The path %s, another spelling of the prefix of Envoy, is refused with 400.', async (path) => {
  const { status } = await api.fetch(path, { headers: { 'Sluice-Token': API_TOKEN } })
  expect(status).toBe(400)
})

describe('the client of a forward-auth call', () => {
  const remaining = async (xff: string, cf?: string) => {
    const { headers } = await auth({
      ...forwarded(xff, '/cart/', 'POST'),
      ...(cf && { 'CF-Connecting-IP': cf }),
    })
    return parseList(headers.get('ratelimit')!)[0]![1].get('r')
  }
  test.each([
    ['one address', (ip: string) => ip, undefined],
    ['forged entries before it', (ip: string) => `192.0.2.66, 10.0.0.1, ${ip}`, undefined],
    [
      'the address of the proxy, appended by Cloudflare, after it',
      (ip: string) => `192.0.2.66, ${ip}, 203.0.113.99`,
      '203.0.113.99',
    ],
    ['one address, which is the proxy itself', (ip: string) => ip, 'same'],
  ])('The client is the last entry of X-Forwarded-For with %s.', async (_, write, cf) => {
    const ip = newIp()
    expect(await remaining(ip)).toBe(1)
    expect(await remaining(write(ip), cf === 'same' ? ip : cf)).toBe(0)
  })

  test("Keys of policies use the client's headers, query and host.", async () => {
    for (const [user, key] of [
      ['ann', 'a'],
      ['bob', 'b'],
    ]) {
      const fields = { ...forwarded(newIp(), `/keyed?user=${user}`), 'x-key': key! }
      expect(parseList((await auth(fields)).headers.get('ratelimit')!)[0]![1].get('r')).toBe(1)
      const { headers } = await auth(forwarded(newIp(), `/query?user=${user}`))
      expect(parseList(headers.get('ratelimit')!)[0]![1].get('r')).toBe(1)
    }
  })

  test('The client cannot set a cost, the query of the auth URL has no effect, and the country of the proxy is not used.', async () => {
    const ip = newIp()
    const priced = { ...forwarded(ip, '/priced'), 'Sluice-Cost': '0' }
    for (const status of [200, 200, 429])
      expect((await auth(priced, '?cost=0&status=200')).status).toBe(status)
    const abroad = {
      ...forwarded(newIp(), '/country'),
      'MF-CF-Blob': JSON.stringify({ country: 'DE' }),
    }
    await auth(abroad)
    const { body } = await api.decide({ policy: 'by-country', key: [null], mode: 'peek' })
    expect(body.limits[0]!.remaining).toBe(1)
  })

  test('Sluice-Shadow names the shadow policy that would have refused the request.', async () => {
    const ip = newIp()
    expect((await auth(forwarded(ip, '/ghost'))).headers.has('sluice-shadow')).toBe(false)
    expect((await auth(forwarded(ip, '/ghost'))).headers.get('sluice-shadow')).toBe('"ghost"')
  })
})

test.each([
  [{ 'X-Forwarded-Uri': '/' }, 'X-Forwarded-Method'],
  [{ 'X-Forwarded-Method': 'GET' }, 'X-Forwarded-Uri'],
  [forwarded('203.0.113.1', '/x#/../cart/'), 'X-Forwarded-Uri'],
  [forwarded('203.0.113.1', '/cart/', 'GET', ''), 'X-Forwarded-Host'],
  [forwarded('203.0.113.1', '/cart/', 'GET', 'a#b'), 'X-Forwarded-Host'],
  [{ 'X-Forwarded-Method': 'G T', 'X-Forwarded-Uri': '/' }, 'do not describe a valid request'],
  [{ ...forwarded('203.0.113.1', '/', 'GET', 'a b') }, 'X-Forwarded-Host'],
  [forwarded('203.0.113.1', '/', 'GET', 'user:pass@shop.example.com'), 'X-Forwarded-Host'],
  [forwarded('203.0.113.1', '/', 'GET', 'shop.example.com/cart?'), 'X-Forwarded-Host'],
])('A forward-auth call with the fields %j is refused with 400.', async (fields, detail) => {
  const { status, body } = await auth(fields)
  expect([status, body.detail]).toEqual([400, expect.stringContaining(detail)])
})

test.each(['*', 'http://evil.example/cart/', '//evil.example/cart/', '/%zz', '/%5Cx', '/%00'])(
  'The X-Forwarded-Uri %j is decided as a path of X-Forwarded-Host.',
  async (uri) => {
    const { status, headers } = await auth(forwarded(newIp(), uri, 'POST'))
    expect([status, headers.get('ratelimit-policy')]).toEqual([
      200,
      expect.stringContaining('per-ip'),
    ])
  },
)

test.each([null, 'not-the-token-at-all'])(
  'A forward-auth call with the token %j is refused with 401 and charges nothing.',
  async (token) => {
    const ip = newIp()
    const authorization = { Authorization: `Bearer ${API_TOKEN}` } // It belongs to the client.
    for (let time = 0; time < 3; time++) {
      const { status, headers } = await auth({ ...cart(ip), ...authorization }, '', { token })
      expect([status, headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
    }
    expect((await auth(cart(ip))).status).toBe(200)
  },
)

test.each(['', '/nginx', '/envoy/cart'])(
  'The refusal of a forward-auth call without a token names the only field that /auth%s reads.',
  async (path) => {
    const authorization = { Authorization: `Bearer ${API_TOKEN}` }
    const { body } = await auth({ ...cart(newIp()), ...authorization }, path, { token: null })
    expect(body).toMatchObject({ detail: 'Send a token in the field Sluice-Token.' })
  },
)

test.each([
  ['', 403, '204', 429],
  ['/nginx', 403, '204', 403],
])(
  'A request of sluice verify uses no quota of its client, and does not reach the app (/auth%s).',
  async (path, status, original, refused) => {
    const ip = newIp()
    const nonce = `a-nonce-${ip.replaceAll('.', '-')}`
    const ask = async (count: number, through = false) => {
      const claim = { nonce, count, at: Date.now(), policy: 'shop', through }
      const answer = await auth({ ...cart(ip), [FIELD]: await signed(claim, VERIFY_TOKEN) }, path)
      return { ...answer, report: JSON.parse(answer.headers.get('sluice-verified')!) }
    }
    const first = await ask(1)
    expect([first.status, first.headers.get('sluice-status')]).toEqual([status, original])
    expect(first.report).toMatchObject({ count: 1, allowed: true, address: ip })
    const through = await ask(2, true)
    expect([through.status, through.headers.get('sluice-status')]).toEqual([200, null])
    const last = await ask(3)
    expect([last.status, last.headers.get('sluice-status')]).toEqual([refused, '429'])
    expect(last.report).toMatchObject({ count: 3, allowed: false, refusedBy: ['shop'] })
    expect(last.report.retryAfter).toBe(last.headers.get('retry-after'))
    const client = await auth(cart(ip), path)
    expect(client.status).toBe(200)
    expect(client.headers.has('sluice-verified')).toBe(false)
  },
)
