/** `/_sluice/health` reports the configuration. `/_sluice/ready` also reports an open circuit. */
import { Redis } from '@upstash/redis'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { ConfigOptions } from '../../../src/core/config/options.ts'
import { createGateway } from '../../../src/hosts/worker/gateway.ts'
import { exactOptions, upstash } from '../../../src/stores/upstash.ts'
import { API_TOKEN, apiTokens, OPERATE } from '../../support/api-stack.ts'
import { useGateway } from '../../support/gateway.ts'

const policies: ConfigOptions['policies'] = [
  { name: 'login', limit: 1, window: '1h', match: { path: '/login' } },
  { name: 'all', limit: 1000, window: '1h' },
]
const gateway = useGateway({ config: { policies }, env: apiTokens })
const URL_OF = 'UPSTASH_REDIS_REST_URL'
const TOKEN_OF = 'UPSTASH_REDIS_REST_TOKEN'
const noUrl = (variable = URL_OF, hint = '') => ({
  code: 'not-configured',
  variable,
  detail: `Set it to the REST URL of the database, such as "https://eu1-name-12345.upstash.io".${hint}`,
})
const noToken = (variable = TOKEN_OF) => ({
  code: 'not-configured',
  variable,
  detail: 'Set it to the REST token of the database.',
})
const noOrigin = (detail: string) => ({
  code: 'no-origin',
  variable: 'ORIGIN',
  detail: expect.stringContaining(detail),
})

describe('a Worker that is configured', () => {
  test.each([
    ['/_sluice/health', 'ok'],
    ['/_sluice/ready', 'ready'],
  ])(
    'A configured Worker answers 200 on %s with the status %s, and calls neither Redis nor the origin.',
    async (path, status) => {
      const before = [gateway.httpRequests(), gateway.origin.requests()]
      const response = await gateway.fetch(path)
      expect(response.status).toBe(200)
      expect(await response.json()).toEqual({ status })
      expect(response.headers.get('cache-control')).toBe('no-store')
      expect(response.headers.has('ratelimit')).toBe(false)
      expect((await gateway.fetch(path, { method: 'HEAD' })).status).toBe(200)
      expect((await gateway.fetch(path, { method: 'POST' })).status).toBe(404)
      expect([gateway.httpRequests(), gateway.origin.requests()]).toEqual(before)
    },
  )

  test('A client of the app needs no variables; one that cannot be created is a problem.', async () => {
    const redis = (env: Record<string, string>) =>
      new Redis({ url: env.MINE ?? '', token: 'token', ...exactOptions })
    const app = createGateway({ origin: 'http://127.0.0.1:1', policies, store: upstash(redis) })
    const context = { waitUntil: () => {}, passThroughOnException: () => {} }
    const problemsOf = async (env: object) => {
      const answer = await app.fetch(new Request('http://h/_sluice/health'), env, context as never)
      return ((await answer.json()) as { problems?: object[] }).problems
    }
    const both = { [URL_OF]: 'https://unused', [TOKEN_OF]: 'unused' }
    expect(await problemsOf({ MINE: 'http://127.0.0.1:1' })).toBeUndefined()
    expect(await problemsOf({})).toEqual([noUrl(), noToken()])
    expect(await problemsOf({ ...both, MINE: 'rediss://hidden' })).toEqual([
      {
        code: 'not-configured',
        detail: 'The function in store failed. The log has its error (store-error).',
      },
    ])
  })

  test('/_sluice/ready names the policies to operators only.', async () => {
    const ready = (token: string) =>
      gateway.fetch('/_sluice/ready', { headers: { Authorization: `Bearer ${token}` } })
    expect(await (await ready(OPERATE)).json()).toEqual({
      status: 'ready',
      policies: ['login', 'all'],
    })
    expect((await ready(API_TOKEN)).status).toBe(403)
    const refused = await ready('a-token-that-is-wrong')
    expect(refused.status).toBe(401)
    expect(await refused.text()).not.toContain('login')
    expect(gateway.events()).toEqual(['api-refused', 'api-refused'])
  })
})

describe('a Worker that is not configured', () => {
  const good = {
    ORIGIN: 'http://127.0.0.1:1',
    [URL_OF]: 'http://127.0.0.1:1',
    [TOKEN_OF]: 'hidden-token',
  }
  test.each<[string, Partial<ConfigOptions>, Record<string, string>, object[]]>([
    ['without secrets', {}, { [URL_OF]: '', [TOKEN_OF]: '' }, [noUrl(), noToken()]],
    ['without a token', {}, { [TOKEN_OF]: '' }, [noToken()]],
    [
      'with a URL that is not the one of the REST API',
      {},
      { [URL_OF]: 'rediss://default:hidden@eu1.upstash.io:6379' },
      [
        noUrl(
          URL_OF,
          ' On Node, Bun and Deno name it REDIS_URL. For a Worker let npx sluice bridge --redis URL serve it over HTTP.',
        ),
      ],
    ],
    ['without an origin', {}, { ORIGIN: '' }, [noOrigin('expected a URL like')]],
    ['with a wrong origin', {}, { ORIGIN: 'hidden.example' }, [noOrigin('expected a URL like')]],
    [
      'with origin zone and without a route on it',
      {},
      { ORIGIN: 'zone' },
      [noOrigin('needs a route')],
    ],
    [
      'without anything',
      {},
      { [URL_OF]: '', [TOKEN_OF]: '', ORIGIN: '' },
      [noUrl(), noToken(), noOrigin('ORIGIN')],
    ],
  ])(
    'A Worker %s answers 503 and names the missing variables, and shows no value.',
    async (_, config, env, problems) => {
      const isolate = gateway.start({ policies, ...config }, { env: { ...good, ...env } })
      for (const [path, status] of [
        ['/_sluice/health', 'misconfigured'],
        ['/_sluice/ready', 'not-ready'],
      ] as const) {
        const response = await isolate.fetch(`http://127.0.0.1${path}`)
        expect(response.status).toBe(503)
        expect(response.headers.get('cache-control')).toBe('no-store')
        const text = await response.text()
        expect(JSON.parse(text)).toEqual({ status, problems })
        expect(text).not.toContain('hidden')
      }
    },
  )

  test('A Worker that only serves the decision API needs no origin.', async () => {
    const env = { ...good, ORIGIN: undefined, SLUICE_API_TOKEN: API_TOKEN }
    const isolate = gateway.start({ policies }, { env })
    expect((await isolate.fetch('/_sluice/health')).status).toBe(200)
    expect((await isolate.fetch('/_sluice/ready')).status).toBe(200)
    const closed = await isolate.fetch('/_sluice/health', {}, { SLUICE_API_TOKEN: undefined })
    expect(closed.status).toBe(503)
  })
})

test('While the circuit of the database is open, a Worker is healthy and not ready.', async () => {
  const env = { [URL_OF]: 'http://127.0.0.1:1', [TOKEN_OF]: 'hidden-token' }
  const isolate = gateway.start({ policies }, { env })
  const get = async (path: string) => {
    const response = await isolate.fetch(path)
    return [response.status, await response.json()]
  }
  expect(await get('/_sluice/ready')).toEqual([200, { status: 'ready' }])
  const notReady = {
    status: 'not-ready',
    problems: [
      {
        code: 'circuit-open',
        detail: 'The database failed repeatedly. Until it answers again, onStoreError decides.',
        since: expect.any(Number),
      },
    ],
  }
  for (let i = 0; i < 5; i++) await isolate.fetch('/')
  const answers = async () => [await get('/_sluice/health'), await get('/_sluice/ready')]
  const expected = [
    [200, { status: 'ok' }],
    [503, notReady],
  ]
  expect(await answers()).toEqual(expected)
  // The next request may try the database again. Until one has succeeded, nothing says that it decides.
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 60_000 })
  onTestFinished(() => void vi.useRealTimers())
  expect(await answers()).toEqual(expected)
  await isolate.fetch('/')
  expect(await answers()).toEqual(expected)
})
