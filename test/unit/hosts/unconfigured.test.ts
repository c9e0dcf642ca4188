/** A limiter without a database is an error, and not an outage. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { endpoints } from '../../../src/features/endpoints/index.ts'
import { createSluice } from '../../../src/hosts/app/sluice.ts'
import { rateLimiter } from '../../../src/hosts/node/node.ts'
import { createGateway } from '../../../src/index.ts'

// On Node the Redis that the tests may use would be the store.
beforeEach(() => void vi.stubEnv('REDIS_URL', undefined))
afterEach(() => void vi.unstubAllEnvs())

const URL_OF = 'https://eu1-name-12345.upstash.io'
const policies = [
  { name: 'all', limit: 2, window: '1h', key: 'global', accept: 'global-key' },
] as const
const config = { origin: 'https://origin.example.com', policies: [...policies] }

test.each([
  ['nothing', {}, ['UPSTASH_REDIS_REST_URL: ', 'UPSTASH_REDIS_REST_TOKEN: ']],
  ['only a URL', { UPSTASH_REDIS_REST_URL: URL_OF }, ['UPSTASH_REDIS_REST_TOKEN: ', 'got nothing']],
  ['only a token', { UPSTASH_REDIS_REST_TOKEN: 'secret' }, ['UPSTASH_REDIS_REST_URL: ', URL_OF]],
  [
    'a URL of Redis',
    { UPSTASH_REDIS_REST_URL: 'rediss://:secret@h:1', UPSTASH_REDIS_REST_TOKEN: 'secret' },
    ['UPSTASH_REDIS_REST_URL: ', 'begins with rediss://'],
  ],
  [
    'a URL of Redis, the way to serve it',
    { UPSTASH_REDIS_REST_URL: 'redis://:secret@h:1', UPSTASH_REDIS_REST_TOKEN: 'secret' },
    [
      'got a value that begins with redis://. ',
      'On Node, Bun and Deno name it REDIS_URL. For a Worker let npx sluice bridge --redis URL serve it',
    ],
  ],
  [
    'a URL in quotes',
    { UPSTASH_REDIS_REST_URL: `"${URL_OF}"`, UPSTASH_REDIS_REST_TOKEN: 'secret' },
    ['UPSTASH_REDIS_REST_URL: ', 'got a value in quotes. Remove the quotes'],
  ],
  [
    'a token in quotes',
    { UPSTASH_REDIS_REST_URL: URL_OF, UPSTASH_REDIS_REST_TOKEN: "'secret'" },
    ['UPSTASH_REDIS_REST_TOKEN: ', 'got a value in quotes. Remove the quotes'],
  ],
  [
    'nothing, what to do on your machine',
    {},
    [
      'got nothing. With a Redis of your own set REDIS_URL on Node, Bun or Deno, or write store: redis(client)',
      'npx sluice dev',
      'npx sluice bridge',
      "unconfigured: 'local'",
    ],
  ],
  ["only Vercel's URL", { KV_REST_API_URL: URL_OF }, ['KV_REST_API_TOKEN: ', 'got nothing']],
  [
    'the wrong one of the URLs of Vercel',
    { KV_REST_API_URL: 'rediss://:secret@h:1', KV_REST_API_TOKEN: 'secret' },
    ['KV_REST_API_URL: ', 'begins with rediss://'],
  ],
  [
    "a URL of Sluice and a token of Vercel, which may be another database's",
    { UPSTASH_REDIS_REST_URL: URL_OF, KV_REST_API_URL: URL_OF, KV_REST_API_TOKEN: 'secret' },
    ['UPSTASH_REDIS_REST_TOKEN: ', 'got nothing'],
  ],
  [
    'a URL without a scheme',
    { UPSTASH_REDIS_REST_URL: 'secret.upstash.io', UPSTASH_REDIS_REST_TOKEN: 'secret' },
    ['UPSTASH_REDIS_REST_URL: ', 'begins with no scheme'],
  ],
])('With %s, a gateway and an app answer 500 and name the variable.', async (_, env, texts) => {
  const log = vi.spyOn(console, 'error').mockImplementation(() => {})
  const gateway = createGateway(config)
  const sluice = createSluice({ policies: [...policies], use: [endpoints()] })
  const request = () => new Request('https://www.example.com/')
  const { response, allowed } = await sluice.check(request(), { env })
  expect(allowed).toBe(false)
  for (const answer of [await gateway.request('https://www.example.com/', {}, env), response!]) {
    expect(answer.status).toBe(500)
    expect(answer.headers.get('content-type')).toBe('application/problem+json')
    const text = await answer.text()
    for (const part of texts) expect(text).toContain(part)
    expect(text).not.toContain('secret')
  }
  expect(log.mock.calls.join()).toContain('"event":"unconfigured"')
  expect(log.mock.calls.join()).not.toContain('secret')
  log.mockRestore()
})

test('A database that is set later is used.', async () => {
  vi.spyOn(console, 'error').mockImplementation(() => {})
  const sluice = createSluice({ policies: [...policies] })
  const request = () => new Request('https://www.example.com/')
  expect((await sluice.check(request(), { env: {} })).response?.status).toBe(500)
  const env = { UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:1', UPSTASH_REDIS_REST_TOKEN: 'token' }
  expect((await sluice.check(request(), { env })).decision.reason).toBe('store-error')
  vi.restoreAllMocks()
})

test("The names of Vercel's integration are read, unless those of Sluice are set.", async () => {
  const log = vi.spyOn(console, 'error').mockImplementation(() => {})
  const sent: [string, string | null][] = []
  const answer = async (url: string, { headers }: RequestInit) => {
    sent.push([new URL(url).host, new Headers(headers).get('authorization')])
    return new Response('', { status: 500 })
  }
  vi.stubGlobal('fetch', vi.fn(answer))
  const vercel = { KV_REST_API_URL: 'https://vercel.example', KV_REST_API_TOKEN: 'one' }
  const own = {
    UPSTASH_REDIS_REST_URL: 'https://own.example',
    UPSTASH_REDIS_REST_TOKEN: 'two',
  }
  for (const env of [vercel, { ...vercel, ...own }]) {
    const sluice = createSluice({ policies: [...policies] })
    await sluice.check(new Request('https://www.example.com/'), { env })
  }
  for (const [name, value] of Object.entries(vercel)) vi.stubEnv(name, value)
  for (const name of Object.keys(own)) vi.stubEnv(name, undefined)
  await createSluice({ policies: [...policies] }).check(new Request('https://www.example.com/'))
  expect(sent).toEqual([
    ['vercel.example', 'Bearer one'],
    ['own.example', 'Bearer two'],
    ['vercel.example', 'Bearer one'],
  ])
  vi.unstubAllGlobals()
  vi.unstubAllEnvs()
  log.mockRestore()
})

test('With a token that no header field can have, `onStoreError` answers.', async () => {
  const log = vi.spyOn(console, 'error').mockImplementation(() => {})
  const sluice = createSluice({ policies: [{ ...policies[0], onStoreError: 'allow' }] })
  for (const token of ['secret\u200b', 'secret\nsecret']) {
    const env = { UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:1', UPSTASH_REDIS_REST_TOKEN: token }
    const checked = await sluice.check(new Request('https://www.example.com/'), { env })
    expect(checked.decision).toMatchObject({ allowed: true, reason: 'store-error' })
  }
  expect(log.mock.calls.join()).not.toContain('secret')
  log.mockRestore()
})

test('A server of Node does not start.', () => {
  vi.stubEnv('UPSTASH_REDIS_REST_URL', '')
  vi.stubEnv('UPSTASH_REDIS_REST_TOKEN', '')
  expect(() => rateLimiter({ policies: [...policies] })).toThrow('UPSTASH_REDIS_REST_URL: expected')
  vi.unstubAllEnvs()
})

test("With unconfigured: 'local' each isolate counts by itself, and the log says so once at each start.", async () => {
  const log = vi.spyOn(console, 'error').mockImplementation(() => {})
  const denying = policies.map((one) => ({ ...one, onStoreError: 'deny' as const }))
  const sluice = createSluice({ policies: denying, unconfigured: 'local' })
  const statuses: (number | undefined)[] = []
  for (let count = 0; count < 3; count += 1) {
    const { response } = await sluice.check(new Request('https://a.example/'), { env: {} })
    statuses.push(response?.status)
  }
  expect(statuses).toEqual([undefined, undefined, 429])
  const events = log.mock.calls.map(([line]) => JSON.parse(line).event)
  expect(events.filter((event) => event === 'unconfigured')).toHaveLength(1)
  expect(events).not.toContain('store-error')
  log.mockRestore()
})

test('Health names the same variables.', async () => {
  const gateway = createGateway(config)
  for (const path of ['health', 'ready']) {
    const answer = await gateway.request(`https://www.example.com/_sluice/${path}`, {}, {})
    expect([answer.status, await answer.json()]).toMatchObject([
      503,
      {
        problems: [
          { code: 'not-configured', variable: 'UPSTASH_REDIS_REST_URL' },
          { code: 'not-configured', variable: 'UPSTASH_REDIS_REST_TOKEN' },
        ],
      },
    ])
  }
})
