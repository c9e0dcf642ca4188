/** Shadow policies, with an origin that echoes the request. */
import { parseList, serializeList } from 'structured-headers'
import { expect, test } from 'vitest'
import type { Echo } from '../../../cli/dev/origin.ts'
import type { PolicyOptions } from '../../../src/core/config/options.ts'
import type { FetchOptions } from '../../../tools/stack.ts'
import { apiTokens } from '../../support/api-stack.ts'
import { useGateway } from '../../support/gateway.ts'

const shadow = (name: string, limit: number, rest: Partial<PolicyOptions> = {}) =>
  ({ name, limit, window: '1h', mode: 'shadow', ...rest }) satisfies PolicyOptions
const enforced = (name: string, limit: number, path: string) =>
  ({ name, limit, window: '1h', match: { path } }) satisfies PolicyOptions

const policies: PolicyOptions[] = [
  shadow('trial', 2, { match: { path: ['/reported', '/once/*', '/mix'] } }),
  shadow('never', 1, { cost: 2, match: { path: ['/reported', '/mix'] } }),
  shadow('wide', 1000, { match: { path: ['/reported', '/mix'] } }),
  shadow('key', 1, {
    key: 'header:x-tenant',
    onMissingKey: 'refuse',
    onStoreError: 'deny',
    match: { path: '/alone' },
  }),
  enforced('few', 1, '/once/few'),
  enforced('many', 100, '/*'),
  enforced('mixed', 10, '/mix'),
]
// `many` applies to all requests except /alone, which only has a shadow policy.
const config = { policies, allow: { path: '/alone', policies: 'many' } }

const gateway = useGateway({ config, env: apiTokens })

/** Sends a request. `names` are the shadow policies that would have refused it, as the origin received them. */
async function ask(path: string, options: FetchOptions) {
  const response = await gateway.fetch(path, options)
  const received = response.status === 200 ? ((await response.json()) as Echo).headers : {}
  const field = received['sluice-shadow']
  const names = field === undefined ? [] : parseList(field).map(([name]) => name)
  return { response, status: response.status, field, names, received }
}

test('A shadow policy refuses no request. The origin and the log see its refusals, and the client does not.', async () => {
  const answers = []
  for (let i = 0; i < 4; i++) answers.push(await ask('/reported', { ip: '192.0.2.1' }))
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  expect(answers.map(({ names }) => names)).toEqual([
    ['never'],
    ['never'],
    ['trial', 'never'],
    ['trial', 'never'],
  ])
  const { field, response } = answers[3]!
  expect(serializeList(parseList(field!))).toBe(field)
  expect(response.headers.get('ratelimit-policy')).toBe('"many";q=100;w=3600')
  expect(response.headers.get('ratelimit')).toMatch(/^"many";r=96;t=\d+$/)
  expect(JSON.stringify([...response.headers])).not.toMatch(/shadow|trial|never|wide/i)

  expect(gateway.logs.map((line) => JSON.parse(line))).toMatchObject([
    { event: 'shadow-refused', code: 'never' },
    { event: 'shadow-refused', code: 'trial' },
  ])
  expect(gateway.logs.join()).not.toContain('192.0.2.1')
})

test('Sluice fields that a client sends do not reach the origin.', async () => {
  const headers = {
    'Sluice-Shadow': '"invented"',
    'Sluice-Cost': '7',
    'Sluice-Token': apiTokens.SLUICE_API_TOKEN,
    'sluice-anything': 'x',
    Sluice_Shadow: '"invented"',
    'x-sluice': 'y',
  }
  const { received, response } = await ask('/', { ip: '192.0.2.2', headers })
  expect(Object.keys(received).filter((name) => name.includes('sluice'))).toEqual(['x-sluice'])
  expect(response.headers.get('ratelimit')).toMatch(/^"many";r=99;/) // no policy uses this cost
  const replaced = await ask('/reported', { ip: '192.0.2.2', headers })
  expect(replaced.field).toBe('"never"')
})

test('A client cannot remove Sluice-Shadow by naming it in Connection.', async () => {
  const headers = { Connection: 'Sluice-Shadow' }
  expect((await ask('/reported', { ip: '192.0.2.7', headers })).field).toBe('"never"')
})

test('A request that an enforced policy refuses is not charged to shadow policies.', async () => {
  const ip = '192.0.2.3'
  expect(await ask('/once/few', { ip })).toMatchObject({ status: 200, names: [] })
  for (let i = 0; i < 5; i++) {
    const { response, status } = await ask('/once/few', { ip })
    expect(status).toBe(429)
    expect(await response.json()).toMatchObject({ 'violated-policies': ['few'] })
  }
  // `trial` has one of its two units left, because the five refused requests charged nothing.
  expect((await ask('/once/other', { ip })).names).toEqual([])
  expect((await ask('/once/other', { ip })).names).toEqual(['trial'])
  // If both policies refuse, the client only sees the enforced one.
  const both = await ask('/once/few', { ip })
  expect(await both.response.json()).toMatchObject({ 'violated-policies': ['few'] })
  // A shadow policy does not charge requests that it would refuse, and `many` still counts them.
  const { response } = await ask('/once/other', { ip })
  expect(response.headers.get('ratelimit')).toMatch(/^"many";r=96;/)
})

test('Three shadow and two enforced policies need one HTTP request, and the shadow policies change no other limit.', async () => {
  const ip = '192.0.2.4'
  const before = gateway.httpRequests()
  const remaining = []
  for (let i = 0; i < 4; i++) {
    const { response, names } = await ask('/mix', { ip })
    expect(names).toEqual(i < 2 ? ['never'] : ['trial', 'never'])
    expect(response.headers.get('ratelimit-policy')).toBe(
      '"many";q=100;w=3600, "mixed";q=10;w=3600',
    )
    remaining.push(/^"mixed";r=(\d+)/.exec(response.headers.get('ratelimit')!)?.[1])
  }
  expect(remaining).toEqual(['9', '8', '7', '6'])
  expect(gateway.httpRequests() - before).toBe(4)
})

test('A shadow policy admits exactly its limit of concurrent requests.', async () => {
  const ip = '192.0.2.5'
  const answers = await Promise.all(Array.from({ length: 8 }, () => ask('/once/other', { ip })))
  expect(answers.filter(({ names }) => names.length === 0)).toHaveLength(2)
  expect(answers.every(({ status }) => status === 200)).toBe(true)
})

test('A shadow policy refuses no request if it applies alone, without its key, or without Redis.', async () => {
  const headers = { 'x-tenant': 'acme' }
  const answers = []
  for (let i = 0; i < 2; i++) answers.push(await ask('/alone', { ip: '192.0.2.6', headers }))
  expect(answers.map(({ status, names }) => [status, names])).toEqual([
    [200, []],
    [200, ['key']],
  ])
  expect(answers[1]!.response.headers.has('ratelimit')).toBe(false)
  expect((await ask('/alone', { ip: '192.0.2.6' })).status).toBe(200)

  const env = { UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:1' }
  const response = await gateway.start(config, { env }).fetch('/alone', { headers })
  expect(response.status).toBe(200)
  expect(((await response.json()) as Echo).headers).not.toHaveProperty('sluice-shadow')
})
