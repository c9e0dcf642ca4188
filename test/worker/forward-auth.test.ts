/** The examples for nginx and Caddy, in front of the demo origin. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { ask, type Question } from '../../dev/proxies/client.ts'
import type { Settings } from '../../dev/proxies/example.ts'
import type { RunningProxy } from '../../dev/proxies/run.ts'
import { type Stack, startStack } from '../../dev/stack.ts'
import {
  binaries,
  config,
  createUndoStack,
  echoOf,
  env,
  names,
  runProxyOf,
} from '../support/forward-auth.ts'

let stack: Stack
beforeAll(async () => {
  stack = await startStack({ config, env })
})
afterAll(() => stack?.stop())

const { undo, undoAll } = createUndoStack()
afterEach(undoAll)

describe.each(names)('%s', (name) => {
  const binary = binaries[name]
  const run = (settings: Partial<Settings> = {}) => runProxyOf(stack, name, settings)
  /** Runs a proxy with these settings until the end of the test. */
  const runForTest = async (settings: Partial<Settings>) => {
    const running = await run(settings)
    undo.push(running.stop)
    return running
  }

  describe.skipIf(!binary)('with its example configuration', () => {
    let proxy: RunningProxy
    beforeAll(async () => {
      proxy = await run()
    })
    afterAll(() => proxy?.stop())
    const get = (path: string, question?: Question) => ask(proxy.url + path, question)

    test('An allowed request reaches the app unchanged, and its answer has the RateLimit fields.', async () => {
      const path = `/page/${name}-as-sent?a=1&b=%2F%20`
      const body = 'x'.repeat(100_000)
      const answer = await get(path, {
        method: 'PATCH',
        headers: { 'Content-Type': 'text/plain', Cookie: 'a=b' },
        body,
      })
      expect(answer.status).toBe(200)
      expect(answer.headers.ratelimit).toMatch(/^"page";r=1;t=\d+$/)
      expect(answer.headers['ratelimit-policy']).toBe('"page";q=2;w=3600')
      const echo = echoOf(answer)
      expect(echo).toMatchObject({ method: 'PATCH', url: path, body: { bytes: 100_000 } })
      expect(echo.headers).toMatchObject({
        'content-type': 'text/plain',
        cookie: 'a=b',
        'x-forwarded-for': '127.0.0.1',
      })
    })

    test('A refused request is a 429 with Retry-After, and never reaches the app.', async () => {
      const path = `/page/${name}-refused`
      for (const remaining of [1, 0]) {
        expect((await get(path)).headers.ratelimit).toMatch(new RegExp(`^"page";r=${remaining};`))
      }
      const before = stack.origin.requests()
      const answer = await get(path, { method: 'POST', body: 'not for the app' })
      expect(answer.status).toBe(429)
      expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
      expect(answer.headers.ratelimit).toMatch(/^"page";r=0;t=\d+$/)
      expect(answer.headers['ratelimit-policy']).toBe('"page";q=2;w=3600')
      expect(answer.headers['cache-control']).toBe('no-store')
      expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/)
      expect(answer.headers).not.toHaveProperty('sluice-status')
      expect(JSON.parse(answer.body)).toMatchObject({ status: 429 })
      expect(stack.origin.requests()).toBe(before)
    })

    test('A request on a deny list is a 403, and never reaches the app.', async () => {
      const before = stack.origin.requests()
      const answer = await get('/forbidden')
      expect(answer.status).toBe(403)
      expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/)
      expect(stack.origin.requests()).toBe(before)
    })

    test('A request without a policy passes without RateLimit fields.', async () => {
      const answer = await get('/free')
      expect(answer.status).toBe(200)
      expect(answer.headers).not.toHaveProperty('ratelimit')
      expect(answer.headers).not.toHaveProperty('ratelimit-policy')
    })

    test('The app’s own 401, 403, 429 and 500 are unchanged.', async () => {
      for (const status of [401, 403, 429, 500, 503]) {
        const answer = await get(`/status/${status}`)
        expect(answer).toMatchObject({ status, body: `status ${status}\n` })
      }
    })

    test('Policies match the method of the client, so a GET does not count as a login.', async () => {
      const path = `/login/${name}`
      for (let i = 0; i < 5; i++) expect((await get(path)).status).toBe(200)
      expect((await get(path, { method: 'POST' })).status).toBe(200)
      expect((await get(path, { method: 'POST' })).status).toBe(429)
      expect((await get(path)).status).toBe(200)
    })

    test('A HEAD request is counted, and its response has no body.', async () => {
      const path = `/page/${name}-head`
      for (const status of [200, 200, 429]) {
        const answer = await get(path, { method: 'HEAD' })
        expect(answer).toMatchObject({ status, body: '' })
        expect(answer.headers.ratelimit).toMatch(/^"page";r=\d;/)
      }
    })

    test('A policy can count by a header of the client.', async () => {
      const path = `/by-key/${name}`
      const as = (key: string) => get(path, { headers: { 'X-Api-Key': key } })
      expect((await as('one')).status).toBe(200)
      expect((await as('one')).status).toBe(429)
      expect((await as('two')).status).toBe(200)
    })

    test.runIf(process.platform === 'linux')(
      'Two clients with different addresses have different quotas.',
      async () => {
        const path = `/page/${name}-two`
        for (const status of [200, 200, 429]) {
          expect((await get(path, { from: '127.0.0.2' })).status).toBe(status)
          expect((await get(path, { from: '127.0.0.3' })).status).toBe(status)
        }
      },
    )

    test('Decisions share a connection to the decision API.', async () => {
      const { hostname, port } = new URL(stack.url)
      let connections = 0
      const relay = createServer((socket) => {
        connections++
        const onward = connect(Number(port), hostname)
        socket.pipe(onward).pipe(socket)
        for (const end of [socket, onward]) end.on('error', () => {})
        undo.push(async () => void onward.destroy())
      }).listen(0, '127.0.0.1')
      await once(relay, 'listening')
      undo.push(async () => void relay.close())
      const api = `http://127.0.0.1:${(relay.address() as AddressInfo).port}`
      const { url } = await runForTest({ api })
      const browser = { headers: { 'Accept-Encoding': 'gzip, deflate, br, zstd' } }
      for (let i = 0; i < 10; i++) expect((await ask(`${url}/free`, browser)).status).toBe(200)
      expect(connections).toBe(1)
    })

    test.each(['pass', 'refuse'] as const)(
      'With a wrong token no request passes (undecided: %s).',
      async (undecided) => {
        const { url } = await runForTest({ token: 'not-the-token-of-the-api', undecided })
        const before = stack.origin.requests()
        for (const path of ['/free', `/page/${name}-wrong`, '/forbidden']) {
          const answer = await ask(url + path)
          expect(answer.status).toBe(503)
          expect(answer.headers).not.toHaveProperty('www-authenticate')
        }
        expect(stack.origin.requests()).toBe(before)
      },
    )
  })
})
