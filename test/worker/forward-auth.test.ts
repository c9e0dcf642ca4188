/** The examples for nginx and Caddy, in front of the demo origin: what clients get, what they can forge, and what happens without Sluice. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { freePort } from 'sluice-upstash-bridge'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Echo } from '../../cli/dev/origin.ts'
import { verifyDeployment } from '../../cli/verify/run.ts'
import type { ConfigOptions } from '../../src/core/config/options.ts'
import { parseConfig } from '../../src/core/config/parse.ts'
import { defaultFields } from '../../src/features/defaults.ts'
import type { ProxyName } from '../../tools/proxies/binaries.ts'
import { type Answer, ask, type Question } from '../../tools/proxies/client.ts'
import type { Settings } from '../../tools/proxies/example.ts'
import { type RunningProxy, runProxy } from '../../tools/proxies/run.ts'
import type { Stack } from '../../tools/stack.ts'
import { findInstalledProxies } from '../support/proxy-binaries.ts'
import { startScriptedOrigin } from '../support/scripted-origin.ts'
import { startStack } from '../support/stack.ts'

const token = 'a-token-of-the-api-for-tests'
const config: ConfigOptions = {
  deny: { name: 'abuse', path: '/forbidden' },
  policies: [
    // Each test uses another path, and so another quota.
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
const verifyToken = 'a-token-to-verify-with'
const env = { SLUICE_API_TOKEN: token, SLUICE_VERIFY_TOKEN: verifyToken }

/** The proxy binaries on this machine. */
const binaries = await findInstalledProxies()
const names: ProxyName[] = ['nginx', 'caddy']

let stack: Stack
beforeAll(async () => {
  stack = await startStack({ config, env })
})
afterAll(() => stack?.stop())

/** Runs a proxy in front of the origin of the stack. */
const run = (name: ProxyName, settings: Partial<Settings> = {}): Promise<RunningProxy> =>
  runProxy(name, binaries[name]!, {
    api: stack.url,
    token,
    app: stack.origin.url,
    undecided: 'pass',
    // Long, so that a busy machine causes no timeout in tests of other features.
    patience: '10s',
    ...settings,
  })
/** Runs a proxy with these settings until the end of the test. */
async function runForTest(name: ProxyName, settings: Partial<Settings>) {
  const running = await run(name, settings)
  onTestFinished(running.stop)
  return running
}

/** The request that the demo origin received. */
const echoOf = ({ body }: Answer): Echo => JSON.parse(body)

describe.each(names.filter((name) => binaries[name]))('%s', (name) => {
  let proxy: RunningProxy
  beforeAll(async () => {
    proxy = await run(name)
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

  test.each([false, true])('sluice verify has no problem (through: %s).', async (through) => {
    const { policies } = config
    const parsed = parseConfig({ policies: policies.slice(0, 3) }, defaultFields)
    const before = stack.origin.requests()
    const options = { url: proxy.url, token: verifyToken, config: parsed, through, maxWaitMs: 0 }
    const findings = await verifyDeployment(options)
    const names = findings.filter(({ status }) => status === 'ok').map((one) => one.name)
    expect(findings.filter(({ status }) => status === 'problem')).toEqual([])
    expect(names).toEqual(['page', 'login', 'by-key', 'shared', 'address'])
    expect(findings.find((one) => one.name === 'configuration')?.text).toMatch(
      /^not checked: Sluice decides here for another server/,
    )
    expect(stack.origin.requests() > before).toBe(through)
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
    const ends: (() => unknown)[] = []
    const relay = createServer((socket) => {
      connections++
      const onward = connect(Number(port), hostname)
      socket.pipe(onward).pipe(socket)
      for (const end of [socket, onward]) end.on('error', () => {})
      ends.push(() => onward.destroy())
    }).listen(0, '127.0.0.1')
    await once(relay, 'listening')
    onTestFinished(() => {
      for (const end of ends) end()
      relay.close()
    })
    const api = `http://127.0.0.1:${(relay.address() as AddressInfo).port}`
    const { url } = await runForTest(name, { api })
    const browser = { headers: { 'Accept-Encoding': 'gzip, deflate, br, zstd' } }
    for (let i = 0; i < 10; i++) expect((await ask(`${url}/free`, browser)).status).toBe(200)
    expect(connections).toBe(1)
  })

  test.each(['pass', 'refuse'] as const)(
    'With a wrong token no request passes (undecided: %s).',
    async (undecided) => {
      const { url } = await runForTest(name, { token: 'not-the-token-of-the-api', undecided })
      const before = stack.origin.requests()
      for (const path of ['/free', `/page/${name}-wrong`, '/forbidden']) {
        const answer = await ask(url + path)
        expect(answer.status).toBe(503)
        expect(answer.headers).not.toHaveProperty('www-authenticate')
      }
      expect(stack.origin.requests()).toBe(before)
    },
  )

  describe('a client whose quota is spent', () => {
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
        'CF-Connecting-IP with the address of the caller',
        { 'CF-Connecting-IP': '127.0.0.1', 'X-Forwarded-For': '198.51.100.7' },
      ],
      ['Forwarded, True-Client-IP', { Forwarded: 'for=198.51.100.7', 'True-Client-IP': '::1' }],
      ['another path', { 'X-Forwarded-Uri': '/free', 'X-Original-URI': '/free' }],
      ['another method', { 'X-Forwarded-Method': 'OPTIONS', 'X-HTTP-Method-Override': 'PUT' }],
      ['another host', { 'X-Forwarded-Host': 'else.example', 'X-Forwarded-Proto': 'ftp' }],
      ['a guessed token', { 'Sluice-Token': 'none-of-yours' }],
      ['two guessed tokens', { 'Sluice-Token': ['none-of-yours', 'nor-this-one'] }],
      ['a price', { 'Sluice-Cost': '0' }],
      ['a decision', { 'Sluice-Status': '200' }],
      ['fields that Connection removes', { Connection: 'X-Forwarded-For, Sluice-Token' }],
      ['other spellings of the fields', { X_Forwarded_For: '198.51.100.7', sluice_token: 'x' }],
    ])('A client does not get another quota with %s.', async (_, headers) => {
      expect((await get(path, { headers })).status).toBe(429)
    })

    test('A client does not get another quota with a query.', async () => {
      const query = 'X-Forwarded-Uri=/free&ip=198.51.100.7&request=x&token=x'
      expect((await get(`${path}?${query}`)).status).toBe(429)
    })

    test('A client does not get another quota with another spelling of the path.', async () => {
      for (const target of [
        `/${path}`,
        path.replace('page', '%70age'),
        `http://else.example${path}`,
      ]) {
        expect((await get('', { target })).status, target).toBe(429)
      }
    })
  })

  test.each([
    '/x/../forbidden',
    '/forbidden/../zz',
    '/forbidden/./x/../../zz',
    '/forbidden/%2e%2e/zz',
    '/forbidden/.%2E/zz',
    '/x//../forbidden',
    '/x//%2e%2e/forbidden',
    '/free/..',
  ])('A path with a segment . or .. is refused: %s', async (target) => {
    expect((await get('', { target })).status).toBe(400)
  })

  // Caddy encodes these characters, also for the app.
  if (name === 'nginx') {
    test('A dot segment that ends with a backslash is refused.', async () => {
      expect((await get('', { target: '/forbidden/..\\zz' })).status).toBe(400)
    })

    test('A fragment in the target does not get a request past a deny list.', async () => {
      for (const target of ['/x/forbidden#', '/forbidden#/free', '/free#/forbidden']) {
        expect((await get('', { target })).status, target).toBe(400)
      }
    })
  }

  test.each(['a#b', 'a?b', 'a/b', 'a@b', '[', '', ' '])(
    'An invalid Host, %j, does not get a request past a deny list.',
    async (host) => {
      const before = stack.origin.requests()
      const { status } = await get('/forbidden', { headers: { Host: host } })
      expect(status).toBeGreaterThanOrEqual(400)
      expect(stack.origin.requests()).toBe(before)
    },
  )

  test('Neither the client nor the app sees the token of the decision API.', async () => {
    const headers = { 'Sluice-Token': 'a-guess', 'Sluice-Cost': '0', 'Sluice-Other': 'x' }
    for (const path of [`/page/${name}-token`, '/free', '/forbidden', '/_sluice/ask']) {
      const { rawHeaders, body } = await get(path, { headers })
      expect(rawHeaders.join() + body).not.toContain(token)
      // nginx cannot remove fields by a prefix. The decision API ignores the other fields.
      expect(body).not.toMatch(name === 'nginx' ? /"sluice-(token|cost)"/ : /"sluice-/)
    }
  })

  test('A request to the proxy’s own location gets no special answer.', async () => {
    const answer = await get('/_sluice/ask', { headers: { 'X-Forwarded-Uri': '/free' } })
    expect(answer.status).toBe(name === 'nginx' ? 404 : 200)
    const api = await get('/_sluice/v1/auth')
    expect(echoOf(api).url).toBe('/_sluice/v1/auth')
  })

  describe.each(['pass', 'refuse'] as const)(
    'without an answer of Sluice (undecided: %s)',
    (undecided) => {
      const outcome = undecided === 'pass' ? 'pass' : 'are refused'
      const expectAsConfigured = (answer: Answer, before: number) => {
        expect(answer.headers).not.toHaveProperty('ratelimit')
        if (undecided === 'refuse') {
          expect(answer.status).toBe(503)
          expect(stack.origin.requests()).toBe(before)
          return
        }
        expect(answer.status).toBe(200)
        expect(echoOf(answer)).toMatchObject({
          method: 'POST',
          url: '/page/away?a=1',
          body: { text: 'still here' },
        })
        expect(echoOf(answer).headers).not.toHaveProperty('sluice-token')
        expect(stack.origin.requests()).toBe(before + 1)
      }
      const post = (url: string) =>
        ask(`${url}/page/away?a=1`, {
          method: 'POST',
          headers: { 'Sluice-Token': 'a-guess' },
          body: 'still here',
        })

      test(`With ${name} requests ${outcome} if no server listens.`, async () => {
        const { url } = await runForTest(name, {
          api: `http://127.0.0.1:${await freePort()}`,
          undecided,
        })
        const before = stack.origin.requests()
        expectAsConfigured(await post(url), before)
      })

      test(`With ${name} requests ${outcome} after a second if the server never answers.`, async () => {
        const silent = createServer(() => {}).listen(0, '127.0.0.1')
        await once(silent, 'listening')
        const { port } = silent.address() as AddressInfo
        const { url } = await runForTest(name, {
          api: `http://127.0.0.1:${port}`,
          undecided,
          patience: '1s',
        })
        onTestFinished(() => void silent.close())
        const before = stack.origin.requests()
        const start = performance.now()
        const answer = await post(url)
        const took = performance.now() - start
        expectAsConfigured(answer, before)
        expect(took).toBeGreaterThan(900)
        expect(took).toBeLessThan(4000)
      })

      test.each([429, 500, 502, 503, 522])(
        `With ${name} requests ${outcome} if the server answers %d, as Cloudflare does for a fault.`,
        async (status) => {
          const failing = await startScriptedOrigin((_, response) =>
            response.writeHead(status, { 'content-type': 'text/html' }).end('<h1>Error</h1>'),
          )
          onTestFinished(failing.close)
          const { url } = await runForTest(name, { api: failing.url, undecided })
          const before = stack.origin.requests()
          expectAsConfigured(await post(url), before)
        },
      )

      test(`With ${name} requests ${outcome} if the server closes the connection.`, async () => {
        const failing = await startScriptedOrigin((_, response) => response.socket!.destroy())
        onTestFinished(failing.close)
        const { url } = await runForTest(name, { api: failing.url, undecided })
        const before = stack.origin.requests()
        expectAsConfigured(await post(url), before)
      })
    },
  )
})

describe('a Worker of its own', () => {
  const running = names.filter((name) => binaries[name])
  test('Each proxy acts as configured after the Worker has stopped.', async () => {
    const own = await startStack({ config, env })
    onTestFinished(async () => {
      await Promise.all([own.bridge.close(), own.origin.close()])
      await own.redis.stop()
    })
    const proxies: [RunningProxy, Settings['undecided']][] = []
    for (const name of running) {
      for (const undecided of ['pass', 'refuse'] as const) {
        proxies.push([await runForTest(name, { api: own.url, undecided }), undecided])
      }
    }
    const statuses = async (path: string) => {
      const answers = await Promise.all(proxies.map(([{ url }]) => ask(url + path)))
      return answers.map(({ status }) => status)
    }
    expect(await statuses('/free')).toEqual(proxies.map(() => 200))
    expect(await statuses('/forbidden')).toEqual(proxies.map(() => 403))
    await own.worker.stop()
    expect(await statuses('/forbidden')).toEqual(
      proxies.map(([, undecided]) => (undecided === 'pass' ? 200 : 503)),
    )
  })

  test('Without the store a request through a proxy gets a 503 with onStoreError deny, and passes with allow.', async () => {
    const own = await startStack({
      config,
      env: { ...env, UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:1' },
    })
    onTestFinished(own.stop)
    for (const name of running) {
      const { url } = await runForTest(name, { api: own.url })
      const before = stack.origin.requests()
      const denied = await ask(`${url}/strict`)
      expect(denied.status).toBe(503)
      expect(denied.headers['content-type']).toMatch(/^application\/problem\+json/)
      expect(stack.origin.requests()).toBe(before)
      const allowed = await ask(`${url}/page/x`)
      expect(allowed.status).toBe(200)
      expect(allowed.headers).not.toHaveProperty('ratelimit')
    }
  })
})
