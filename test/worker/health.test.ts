/** `/_sluice/health` reports the configuration. `/_sluice/ready` also reports open circuits of databases. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Stack, startStack } from '../../dev/stack.ts'
import { startWorker } from '../../dev/worker.ts'
import type { ConfigOptions } from '../../src/config/options.ts'
import { shards } from '../../src/shards/index.ts'

const anyConfig = new URL('../../.cache/workers/any-config', import.meta.url).pathname
const OPERATE = 'an-operate-token-for-tests'
const API_TOKEN = 'a-api-token-for-tests'
const policies: ConfigOptions['policies'] = [
  { name: 'login', limit: 1, window: '1h', match: { path: '/login' } },
  { name: 'all', limit: 1000, window: '1h' },
]
const URL_OF = 'UPSTASH_REDIS_REST_URL'
const TOKEN_OF = 'UPSTASH_REDIS_REST_TOKEN'
const noUrl = (variable = URL_OF) => ({
  code: 'not-configured',
  variable,
  detail: 'Set it to the REST URL of the database, such as "https://eu1-name-12345.upstash.io".',
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
  let stack: Stack
  beforeAll(async () => {
    stack = await startStack({
      config: { policies },
      env: { SLUICE_OPERATE_TOKEN: OPERATE, SLUICE_API_TOKEN: API_TOKEN },
    })
  })
  afterAll(() => stack.stop())

  test.each([
    ['/_sluice/health', 'ok'],
    ['/_sluice/ready', 'ready'],
  ])(
    'A configured Worker answers 200 on %s with the status %s, and calls neither Redis nor the origin.',
    async (path, status) => {
      const before = [stack.httpRequests(), stack.origin.requests()]
      const response = await stack.fetch(path)
      expect(response.status).toBe(200)
      expect(await response.json()).toEqual({ status })
      expect(response.headers.get('cache-control')).toBe('no-store')
      expect(response.headers.has('ratelimit')).toBe(false)
      expect((await stack.fetch(path, { method: 'HEAD' })).status).toBe(200)
      expect((await stack.fetch(path, { method: 'POST' })).status).toBe(404)
      expect([stack.httpRequests(), stack.origin.requests()]).toEqual(before)
    },
  )

  test('/_sluice/ready names the policies to operators only.', async () => {
    const ready = (token: string) =>
      stack.fetch('/_sluice/ready', { headers: { Authorization: `Bearer ${token}` } })
    expect(await (await ready(OPERATE)).json()).toEqual({
      status: 'ready',
      policies: ['login', 'all'],
    })
    expect((await ready(API_TOKEN)).status).toBe(403)
    const refused = await ready('a-token-that-is-wrong')
    expect(refused.status).toBe(401)
    expect(await refused.text()).not.toContain('login')
    const events = () => stack.worker.logs.map((line) => JSON.parse(line).event)
    await expect.poll(events).toEqual(['api-refused', 'api-refused'])
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
      [noUrl()],
    ],
    [
      'without the secrets of one of its databases',
      { shards: shards(['eu-1', 'eu-2']) },
      { [`${URL_OF}_EU_1`]: 'http://127.0.0.1:1', [`${TOKEN_OF}_EU_1`]: 'hidden-token' },
      [noUrl(`${URL_OF}_EU_2`), noToken(`${TOKEN_OF}_EU_2`)],
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
      const worker = await startWorker(anyConfig, {
        env: { ...good, CONFIG: JSON.stringify({ policies, ...config }), ...env },
      })
      try {
        for (const [path, status] of [
          ['/_sluice/health', 'misconfigured'],
          ['/_sluice/ready', 'not-ready'],
        ]) {
          const response = await fetch(worker.url + path)
          expect(response.status).toBe(503)
          expect(response.headers.get('cache-control')).toBe('no-store')
          const text = await response.text()
          expect(JSON.parse(text)).toEqual({ status, problems })
          expect(text).not.toContain('hidden')
        }
      } finally {
        await worker.stop()
      }
    },
  )

  test('A Worker that only serves the decision API needs no origin.', async () => {
    const { ORIGIN: _, ...secrets } = good
    const worker = await startWorker(anyConfig, {
      env: { ...secrets, SLUICE_API_TOKEN: API_TOKEN, CONFIG: JSON.stringify({ policies }) },
    })
    try {
      expect((await fetch(`${worker.url}/_sluice/health`)).status).toBe(200)
      expect((await fetch(`${worker.url}/_sluice/ready`)).status).toBe(200)
    } finally {
      await worker.stop()
    }
  })
})

test.each<[string, Partial<ConfigOptions>, object]>([
  ['its database', {}, {}],
  [
    'one of its databases',
    { shards: shards(['eu-1', 'eu-2']) },
    { store: expect.stringMatching(/^eu-[12]$/) },
  ],
])(
  'While the circuit of %s is open, a Worker is healthy and not ready.',
  async (_, config, named) => {
    const secrets = ['', '_EU_1', '_EU_2'].flatMap((suffix) => [
      [URL_OF + suffix, 'http://127.0.0.1:1'],
      [TOKEN_OF + suffix, 'hidden-token'],
    ])
    const worker = await startWorker(anyConfig, {
      env: {
        CONFIG: JSON.stringify({ policies, ...config }),
        ORIGIN: 'http://127.0.0.1:1',
        SLUICE_SECRET: 'a-secret-for-tests',
        ...Object.fromEntries(secrets),
      },
    })
    const get = async (path: string) => {
      const response = await fetch(worker.url + path)
      return [response.status, await response.json()]
    }
    try {
      expect(await get('/_sluice/ready')).toEqual([200, { status: 'ready' }])
      const notReady = {
        status: 'not-ready',
        problems: [
          {
            code: 'circuit-open',
            ...named,
            detail: 'The database failed repeatedly. Until it answers again, onStoreError decides.',
          },
        ],
      }
      // The circuit stays open for a second only.
      await vi.waitFor(
        async () => {
          for (let i = 0; i < 5; i++) await fetch(worker.url)
          const answers = [await get('/_sluice/health'), await get('/_sluice/ready')]
          expect(answers).toEqual([
            [200, { status: 'ok' }],
            [503, notReady],
          ])
        },
        { timeout: 10_000 },
      )
      // After a time without requests, the circuit admits a trial call.
      await vi.waitFor(
        async () => expect(await get('/_sluice/ready')).toEqual([200, { status: 'ready' }]),
        { timeout: 10_000, interval: 100 },
      )
    } finally {
      await worker.stop()
    }
  },
)
