/** The examples for nginx and Caddy, run by the real ones, in front of the demo origin, with our Worker as the authority. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { freePort } from 'sluice-upstash-bridge'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Echo } from '../../dev/origin.ts'
import type { ProxyName } from '../../dev/proxies/binaries.ts'
import { type Answer, ask, type Question } from '../../dev/proxies/client.ts'
import type { Settings } from '../../dev/proxies/example.ts'
import { type RunningProxy, runProxy } from '../../dev/proxies/run.ts'
import { type Stack, startStack } from '../../dev/stack.ts'
import type { ConfigOptions } from '../../src/config/options.ts'
import { proxiesHere } from '../support/binaries.ts'
import { startScripted } from '../support/scripted.ts'

const token = 'a-token-of-the-api-for-tests'
const config: ConfigOptions = {
  deny: { name: 'abuse', path: '/forbidden' },
  policies: [
    // A path of its own is a quota of its own: tests do not meet each other.
    { name: 'page', limit: 2, window: '1h', match: { path: '/page/*' }, key: ['ip', 'path'] },
    {
      name: 'login',
      limit: 1,
      window: '1h',
      match: { path: '/login/*', method: 'POST' },
      key: ['ip', 'path'],
    },
    {
      name: 'by-key',
      limit: 1,
      window: '1h',
      match: { path: '/by-key/*' },
      key: ['header:x-api-key', 'path'],
    },
    { name: 'strict', limit: 9, window: '1h', match: { path: '/strict' }, onStoreError: 'deny' },
  ],
}
const env = { SLUICE_API_TOKEN: token }

const here = await proxiesHere()
const names: ProxyName[] = ['nginx', 'caddy']

let stack: Stack
beforeAll(async () => {
  stack = await startStack({ config, env })
})
afterAll(() => stack?.stop())

const undo: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step()
})

describe.each(names)('%s', (name) => {
  const binary = here[name]
  const run = (settings: Partial<Settings> = {}) =>
    runProxy(name, binary!, {
      api: stack.url,
      token,
      app: stack.origin.url,
      undecided: 'pass',
      // A busy machine must not turn a wait into a failure where none is being tested.
      patience: '10s',
      ...settings,
    })
  /** One with other settings, for this test. */
  const runHere = async (settings: Partial<Settings>) => {
    const running = await run(settings)
    undo.push(running.stop)
    return running
  }

  describe.skipIf(!binary)('with the example of it', () => {
    let proxy: RunningProxy
    beforeAll(async () => {
      proxy = await run()
    })
    afterAll(() => proxy?.stop())
    const get = (path: string, question?: Question) => ask(proxy.url + path, question)

    test('an allowed request reaches the app as the client sent it, and the client sees what is left', async () => {
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
      const echo = seenByApp(answer)
      expect(echo).toMatchObject({ method: 'PATCH', url: path, body: { bytes: 100_000 } })
      expect(echo.headers).toMatchObject({
        'content-type': 'text/plain',
        cookie: 'a=b',
        'x-forwarded-for': '127.0.0.1',
      })
    })

    test('a refused request is a 429 that says when to come back, and never reaches the app', async () => {
      const path = `/page/${name}-refused`
      for (const left of [1, 0]) {
        expect((await get(path)).headers.ratelimit).toMatch(new RegExp(`^"page";r=${left};`))
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

    test('a request on a list of the denied is a 403, and never reaches the app', async () => {
      const before = stack.origin.requests()
      const answer = await get('/forbidden')
      expect(answer.status).toBe(403)
      expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/)
      expect(stack.origin.requests()).toBe(before)
    })

    test('a request that meets no policy passes, without fields', async () => {
      const answer = await get('/free')
      expect(answer.status).toBe(200)
      expect(answer.headers).not.toHaveProperty('ratelimit')
      expect(answer.headers).not.toHaveProperty('ratelimit-policy')
    })

    test('the app’s own 401, 403, 429 and 500 stay as they are', async () => {
      for (const status of [401, 403, 429, 500, 503]) {
        const answer = await get(`/status/${status}`)
        expect(answer).toMatchObject({ status, body: `status ${status}\n` })
      }
    })

    test('policies go by the client’s method: five GETs are no login', async () => {
      const path = `/login/${name}`
      for (let i = 0; i < 5; i++) expect((await get(path)).status).toBe(200)
      expect((await get(path, { method: 'POST' })).status).toBe(200)
      expect((await get(path, { method: 'POST' })).status).toBe(429)
      expect((await get(path)).status).toBe(200)
    })

    test('HEAD is counted, and answered without a body', async () => {
      const path = `/page/${name}-head`
      for (const status of [200, 200, 429]) {
        const answer = await get(path, { method: 'HEAD' })
        expect(answer).toMatchObject({ status, body: '' })
        expect(answer.headers.ratelimit).toMatch(/^"page";r=\d;/)
      }
    })

    test('a key in a header of the client is the client’s', async () => {
      const path = `/by-key/${name}`
      const as = (key: string) => get(path, { headers: { 'X-Api-Key': key } })
      expect((await as('one')).status).toBe(200)
      expect((await as('one')).status).toBe(429)
      expect((await as('two')).status).toBe(200)
    })

    test.runIf(process.platform === 'linux')(
      'two clients have a quota each, by the addresses that the proxy sees',
      async () => {
        const path = `/page/${name}-two`
        for (const status of [200, 200, 429]) {
          expect((await get(path, { from: '127.0.0.2' })).status).toBe(status)
          expect((await get(path, { from: '127.0.0.3' })).status).toBe(status)
        }
      },
    )

    describe('a client cannot pass for another', () => {
      const path = `/page/${name}-spent`
      beforeAll(async () => {
        for (const status of [200, 200, 429]) expect((await get(path)).status).toBe(status)
      })

      test.each<[string, Record<string, string | string[]>]>([
        ['an address in X-Forwarded-For', { 'X-Forwarded-For': '198.51.100.7' }],
        [
          'several of them',
          { 'X-Forwarded-For': ['198.51.100.7', '198.51.100.8, 127.0.0.1', '198.51.100.9'] },
        ],
        ['X-Real-IP', { 'X-Real-IP': '198.51.100.7' }],
        ['CF-Connecting-IP', { 'CF-Connecting-IP': '198.51.100.7' }],
        [
          'CF-Connecting-IP that makes our own address the caller’s',
          { 'CF-Connecting-IP': '127.0.0.1', 'X-Forwarded-For': '198.51.100.7' },
        ],
        ['Forwarded, True-Client-IP', { Forwarded: 'for=198.51.100.7', 'True-Client-IP': '::1' }],
        ['another path', { 'X-Forwarded-Uri': '/free', 'X-Original-URI': '/free' }],
        ['another method', { 'X-Forwarded-Method': 'OPTIONS', 'X-HTTP-Method-Override': 'PUT' }],
        ['another host', { 'X-Forwarded-Host': 'else.example', 'X-Forwarded-Proto': 'ftp' }],
        ['a token', { 'Sluice-Token': 'none-of-yours' }],
        ['two tokens', { 'Sluice-Token': ['none-of-yours', 'nor-this-one'] }],
        ['a price', { 'Sluice-Cost': '0' }],
        ['a verdict', { 'Sluice-Status': '200' }],
        ['fields struck out as hop by hop', { Connection: 'X-Forwarded-For, Sluice-Token' }],
        ['other spellings of the fields', { X_Forwarded_For: '198.51.100.7', sluice_token: 'x' }],
      ])('with %s', async (_, headers) => {
        expect((await get(path, { headers })).status).toBe(429)
      })

      test('with a query', async () => {
        const query = 'X-Forwarded-Uri=/free&ip=198.51.100.7&request=x&token=x'
        expect((await get(`${path}?${query}`)).status).toBe(429)
      })

      test('with another spelling of the path', async () => {
        for (const target of [
          `/${path}`,
          path.replace('page', '%70age'),
          path.replace('/page/', '/x/../page/'),
          `http://else.example${path}`,
        ]) {
          expect((await get('', { target })).status, target).toBe(429)
        }
      })
    })

    // To Caddy, and to the app behind it, it is a character of the path.
    if (name === 'nginx') {
      test('a fragment, which no request has, opens nothing', async () => {
        for (const target of ['/x/../forbidden#', '/forbidden#/../free', '/free#/../forbidden']) {
          expect((await get('', { target })).status, target).toBe(503)
        }
      })
    }

    test.each(['a#b', 'a?b', 'a/b', 'a@b', '[', '', ' '])(
      'a Host that is none, %j, opens nothing',
      async (host) => {
        const before = stack.origin.requests()
        const { status } = await get('/forbidden', { headers: { Host: host } })
        expect(status).toBeGreaterThanOrEqual(400)
        expect(stack.origin.requests()).toBe(before)
      },
    )

    test('the token stays between the proxy and the decision API', async () => {
      const headers = { 'Sluice-Token': 'a-guess', 'Sluice-Cost': '0', 'Sluice-Other': 'x' }
      for (const path of [`/page/${name}-token`, '/free', '/forbidden', '/_sluice/ask']) {
        const { rawHeaders, body } = await get(path, { headers })
        expect(rawHeaders.join() + body).not.toContain(token)
        // nginx has no way to strike out all that begin alike; the decision API overlooks the others.
        expect(body).not.toMatch(name === 'nginx' ? /"sluice-(token|cost)"/ : /"sluice-/)
      }
    })

    test('what the client sends to the proxy’s own location is nothing special', async () => {
      const answer = await get('/_sluice/ask', { headers: { 'X-Forwarded-Uri': '/free' } })
      expect(answer.status).toBe(name === 'nginx' ? 404 : 200)
      const api = await get('/_sluice/v1/auth')
      expect(seenByApp(api).url).toBe('/_sluice/v1/auth')
    })

    test('decisions share a connection to the decision API', async () => {
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
      const { url } = await runHere({ api })
      const browser = { headers: { 'Accept-Encoding': 'gzip, deflate, br, zstd' } }
      for (let i = 0; i < 10; i++) expect((await ask(`${url}/free`, browser)).status).toBe(200)
      expect(connections).toBe(1)
    })

    test.each(['pass', 'refuse'] as const)(
      'a wrong token lets nobody through (undecided: %s)',
      async (undecided) => {
        const { url } = await runHere({ token: 'not-the-token-of-the-api', undecided })
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

  describe.skipIf(!binary).each(['pass', 'refuse'] as const)(
    'with Sluice away, requests %s as configured',
    (undecided) => {
      const expectAsConfigured = (answer: Answer, before: number) => {
        expect(answer.headers).not.toHaveProperty('ratelimit')
        if (undecided === 'refuse') {
          expect(answer.status).toBe(503)
          expect(stack.origin.requests()).toBe(before)
          return
        }
        expect(answer.status).toBe(200)
        expect(seenByApp(answer)).toMatchObject({
          method: 'POST',
          url: '/page/away?a=1',
          body: { text: 'still here' },
        })
        expect(seenByApp(answer).headers).not.toHaveProperty('sluice-token')
        expect(stack.origin.requests()).toBe(before + 1)
      }
      const post = (url: string) =>
        ask(`${url}/page/away?a=1`, {
          method: 'POST',
          headers: { 'Sluice-Token': 'a-guess' },
          body: 'still here',
        })

      test('nobody listens', async () => {
        const { url } = await runHere({ api: `http://127.0.0.1:${await freePort()}`, undecided })
        const before = stack.origin.requests()
        expectAsConfigured(await post(url), before)
      })

      test('it takes connections and never answers: a client waits a second, not more', async () => {
        const silent = createServer(() => {}).listen(0, '127.0.0.1')
        await once(silent, 'listening')
        const { port } = silent.address() as AddressInfo
        const { url } = await runHere({
          api: `http://127.0.0.1:${port}`,
          undecided,
          patience: '1s',
        })
        undo.push(async () => void silent.close())
        const before = stack.origin.requests()
        const start = performance.now()
        const answer = await post(url)
        const took = performance.now() - start
        expectAsConfigured(answer, before)
        expect(took).toBeGreaterThan(900)
        expect(took).toBeLessThan(4000)
      })

      test.each([429, 500, 502, 503, 522])(
        'it answers %d, as Cloudflare does of a fault',
        async (status) => {
          const failing = await startScripted((_, response) =>
            response.writeHead(status, { 'content-type': 'text/html' }).end('<h1>Error</h1>'),
          )
          undo.push(failing.close)
          const { url } = await runHere({ api: failing.url, undecided })
          const before = stack.origin.requests()
          expectAsConfigured(await post(url), before)
        },
      )

      test('it breaks off', async () => {
        const failing = await startScripted((_, response) => response.socket!.destroy())
        undo.push(failing.close)
        const { url } = await runHere({ api: failing.url, undecided })
        const before = stack.origin.requests()
        expectAsConfigured(await post(url), before)
      })
    },
  )
})

test.skipIf(!here.nginx || !here.caddy)(
  'when the Worker goes down, each proxy does as configured',
  async () => {
    const worker = await startStack({ config, env })
    const proxies: [RunningProxy, Settings['undecided']][] = []
    for (const name of names) {
      for (const undecided of ['pass', 'refuse'] as const) {
        const settings = {
          api: worker.url,
          token,
          app: stack.origin.url,
          undecided,
          patience: '10s',
        }
        proxies.push([await runProxy(name, here[name]!, settings), undecided])
      }
    }
    undo.push(worker.stop, ...proxies.map(([{ stop }]) => stop))
    const status = ([{ url }]: (typeof proxies)[number], path: string) =>
      ask(url + path).then((answer) => answer.status)

    for (const proxy of proxies) expect(await status(proxy, '/free')).toBe(200)
    for (const proxy of proxies) expect(await status(proxy, '/forbidden')).toBe(403)
    await worker.worker.stop()
    undo.shift()
    undo.unshift(
      () => Promise.all([worker.bridge.close(), worker.origin.close()]),
      worker.redis.stop,
    )
    for (const proxy of proxies) {
      expect(await status(proxy, '/forbidden')).toBe(proxy[1] === 'pass' ? 200 : 503)
    }
  },
)

describe('with the store away', () => {
  let away: Stack
  beforeAll(async () => {
    away = await startStack({
      config,
      env: { ...env, UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:1' },
    })
  })
  afterAll(() => away?.stop())

  test.each(names)(
    'a policy that denies is a 503 through %s, one that allows passes',
    async (name) => {
      const binary = here[name]
      if (!binary) return
      const proxy = await runProxy(name, binary, {
        api: away.url,
        token,
        app: stack.origin.url,
        undecided: 'pass',
        patience: '10s',
      })
      undo.push(proxy.stop)
      const before = stack.origin.requests()
      const denied = await ask(`${proxy.url}/strict`)
      expect(denied.status).toBe(503)
      expect(denied.headers['content-type']).toMatch(/^application\/problem\+json/)
      expect(stack.origin.requests()).toBe(before)
      const allowed = await ask(`${proxy.url}/page/x`)
      expect(allowed.status).toBe(200)
      expect(allowed.headers).not.toHaveProperty('ratelimit')
    },
  )
})

/** What the demo origin says that it got. */
function seenByApp(answer: Answer): Echo {
  return JSON.parse(answer.body)
}
