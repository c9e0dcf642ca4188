/** Refusals by a function, in the middleware of Hono and in `createSluice`. */
import { Hono } from 'hono'
import { expect, test, vi } from 'vitest'
import { rateLimitProxy } from '../../../src/hosts/node/next.ts'
import { createSluice, rateLimiter } from '../../../src/index.ts'
import { useDatabase } from '../../support/database.ts'

const { env } = useDatabase()

const terms = { limit: 1, window: '1h', key: 'global', algorithm: 'fixed-window' } as const
let namespaces = 0

test("In a Hono app the function gets Hono's context, and the fields are added to its response.", async () => {
  const app = new Hono()
  app.use(
    rateLimiter({
      namespace: `hono-${++namespaces}`,
      deadline: '5s',
      refusal: (decision, c) => c.json({ wait: decision.retryAfterMs, path: c.req.path }, 402),
      policies: [{ name: 'a', ...terms }],
    }),
  )
  app.get('/page', (c) => c.text('ok'))
  expect((await app.request('/page', {}, env)).status).toBe(200)
  const response = await app.request('/page', {}, env)
  expect(response.status).toBe(402)
  expect(response.headers.get('ratelimit')).toMatch(/^"a";r=0;t=(3600|359\d)$/)
  expect(response.headers.get('retry-after')).toMatch(/^(3600|359\d)$/)
  expect(response.headers.get('cache-control')).toBe('no-store')
  expect(await response.json()).toEqual({ wait: expect.any(Number), path: '/page' })
})

test('A function that throws in an app is logged, and a browser gets the page.', async () => {
  const log = vi.spyOn(console, 'error').mockImplementation(() => {})
  const sluice = createSluice({
    namespace: 'throws',
    deadline: '5s',
    refusal: () => {
      throw new RangeError('no')
    },
    policies: [{ name: 'a', ...terms }],
  })
  const check = () =>
    sluice.check(new Request('https://a.test/', { headers: { accept: 'text/html' } }), { env })
  await check()
  const { response } = await check()
  expect(response!.status).toBe(429)
  expect(await response!.text()).toContain('<h1>Too many requests</h1>')
  expect(JSON.parse(log.mock.lastCall![0])).toMatchObject({
    event: 'refusal-error',
    code: 'RangeError',
  })
  log.mockRestore()
})

test('A function answers what is over a limit. A denied request keeps its 403, and a function is not asked.', async () => {
  const asked: unknown[] = []
  const sluice = createSluice({
    namespace: `denied-${++namespaces}`,
    deadline: '5s',
    clientAddress: (request: Request) => request.headers.get('x-ip'),
    deny: [{ name: 'banned', ip: '192.0.2.66' }],
    refusal: (decision) => {
      asked.push(decision.reason)
      return new Response(`Wait ${decision.retryAfterMs} ms.`, { status: 429 })
    },
    policies: [{ name: 'a', ...terms, key: 'header:x-user', onMissingKey: 'refuse' }],
  })
  const ask = async (headers: Record<string, string>) => {
    const { response } = await sluice.check(new Request('https://a.test/', { headers }), { env })
    return response && [response.status, response.headers.get('retry-after')]
  }
  expect(await ask({ 'x-ip': '192.0.2.66', 'x-user': 'a' })).toEqual([403, null])
  expect(await ask({ 'x-ip': '192.0.2.1' })).toEqual([403, null])
  expect(asked).toEqual([])
  expect(await ask({ 'x-ip': '192.0.2.1', 'x-user': 'a' })).toBeUndefined()
  expect(await ask({ 'x-ip': '192.0.2.1', 'x-user': 'a' })).toEqual([429, expect.any(String)])
  expect(asked).toEqual(['limited'])
})

test("In Next.js the function gets the proxy's request.", async () => {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
  const proxy = rateLimitProxy({
    namespace: `next-${++namespaces}`,
    deadline: '5s',
    policies: [
      { name: 'a', ...terms, refusal: (_, { url }) => new Response(url, { status: 420 }) },
    ],
  })
  const ask = () => proxy(new Request('https://a.test/x'), { waitUntil: () => {} })
  expect((await ask()).status).toBe(200)
  const response = await ask()
  expect([response.status, await response.text()]).toEqual([420, 'https://a.test/x'])
  expect(response.headers.get('retry-after')).toMatch(/^(3600|359\d)$/)
  vi.unstubAllEnvs()
})
