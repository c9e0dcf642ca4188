import { once } from 'node:events'
import { createServer, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { AllCounts } from '../../cli/dashboard/analytics.ts'
import { createHistory } from '../../cli/dashboard/history.ts'
import { type RunningDashboard, readCounts, startDashboard } from '../../cli/dashboard/server.ts'
import { openSession } from '../support/dashboard-session.ts'
import { run, sluice } from '../support/dev-command.ts'
import { FAKE_TOKEN, type FakeWorker, startFakeWorker } from '../support/fake-worker.ts'

let worker: FakeWorker
let dashboard: RunningDashboard
let cookie: string
beforeAll(async () => {
  worker = await startFakeWorker()
  dashboard = await startDashboard({ url: worker.url, token: () => FAKE_TOKEN, port: 0 })
  cookie = await openSession(dashboard)
})
beforeEach(() => {
  worker.calls.length = 0
  worker.answer = ({ path }) => ({ body: { path } })
})
afterAll(async () => {
  await dashboard.close()
  await worker.close()
})

interface Sent {
  method?: string
  headers?: OutgoingHttpHeaders
  body?: string
}

/** Sends a request with exactly these header fields and the cookie of the session, and the path as it is. */
async function send(path: string, { method = 'GET', headers = {}, body }: Sent = {}) {
  const { port } = new URL(dashboard.url)
  const fields = { Cookie: cookie, ...headers }
  const sent = request({ host: '127.0.0.1', port, path, method, headers: fields }).end(body)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  let text = ''
  for await (const chunk of response) text += chunk
  return { status: response.statusCode, headers: response.headers, text }
}

const STATS = '/_sluice/v1/stats'

test.each([{}, [], null, { total: {}, slots: 7 }, { total: null, slots: [] }, '<html>'])(
  'The answer %j to a reading between the calls of the page does not end the command.',
  async (body) => {
    const headers = { 'Content-Type': 'application/json' }
    worker.answer = () => ({ headers, body })
    const history = createHistory()
    await readCounts({ url: worker.url, token: () => FAKE_TOKEN }, history)
    expect(worker.calls.map(({ path }) => path)).toEqual([STATS])
    expect(history.read('hour', Date.now())).toMatchObject({ slots: [] })
  },
)

test.each([
  ['can be read', { fallbacks: 7 }, { circuit: 'open', fallbacks: 7, isOfAll: true }],
  ['cannot be read', undefined, { circuit: 'open', fallbacks: 1 }],
])('If the counts of all isolates %s, the page gets the right ones.', async (_, all, shown) => {
  worker.answer = () => ({ body: { circuit: 'open', fallbacks: 1 } })
  const analytics = {
    counts: async () => all as AllCounts | undefined,
    history: async () => undefined,
  }
  const own = { url: worker.url, token: () => FAKE_TOKEN, port: 0, analytics }
  const other = await startDashboard(own)
  try {
    const headers = { Cookie: await openSession(other) }
    const response = await fetch(other.url + STATS, { headers })
    expect(await response.json()).toEqual(shown)
  } finally {
    await other.close()
  }
})
const BAN = '/_sluice/v1/policies/login/ban'

describe('the files of the dashboard', () => {
  test.each([
    ['/', 'text/html; charset=utf-8'],
    ['/page.js', 'text/javascript; charset=utf-8'],
    ['/base.css', 'text/css; charset=utf-8'],
    ['/style.css', 'text/css; charset=utf-8'],
    ['/about', 'application/json'],
  ])(
    '%s does not contain the token, and allows no script of another source.',
    async (path, type) => {
      const { status, headers, text } = await send(path)
      expect([status, headers['content-type']]).toEqual([200, type])
      expect(text).not.toContain(FAKE_TOKEN)
      expect(text).not.toContain(new URL(dashboard.address).hash.slice(1))
      expect(text.length).toBeGreaterThan(20)
      const policy = headers['content-security-policy']
      expect(policy).toMatch(/default-src 'none'; script-src 'self';/)
      expect(policy).toContain("require-trusted-types-for 'script'")
      expect(policy).not.toContain('unsafe')
      expect(headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
      })
      expect(headers).not.toHaveProperty('access-control-allow-origin')
    },
  )

  test('The document has no inline script and no inline style.', async () => {
    const { text } = await send('/')
    expect(text).not.toMatch(/<script(?![^>]* src=)|<style| style=| on\w+=/)
  })
})

describe('the calls of the dashboard', () => {
  test('They get the token of an operator, and the answer of the Worker.', async () => {
    const origin = dashboard.url
    const read = await send(STATS, { headers: { 'Sec-Fetch-Site': 'same-origin' } })
    const ban = await send(BAN, {
      method: 'POST',
      headers: { Origin: origin },
      body: '{"for":"1h"}',
    })
    expect([read, ban].map(({ status, text }) => [status, JSON.parse(text)])).toEqual([
      [200, { path: STATS }],
      [200, { path: BAN }],
    ])
    expect(
      worker.calls.map(({ method, headers, body }) => [method, headers.authorization, body]),
    ).toEqual([
      ['GET', `Bearer ${FAKE_TOKEN}`, ''],
      ['POST', `Bearer ${FAKE_TOKEN}`, { for: '1h' }],
    ])
    expect(worker.calls.map(({ headers }) => headers.origin)).toEqual([undefined, undefined])
  })

  test.each<[string, string, Sent]>([
    ['Another host name, as after DNS rebinding', STATS, { headers: { Host: 'evil.example' } }],
    [
      'A host name that begins like a loopback one',
      STATS,
      { headers: { Host: '127.0.0.1.evil.example' } },
    ],
    ['The page under another host name', '/', { headers: { Host: 'evil.example:8780' } }],
    ['Another origin', STATS, { headers: { Origin: 'https://evil.example' } }],
    ['An opaque origin', BAN, { method: 'POST', headers: { Origin: 'null' } }],
    ['Another port of this machine', STATS, { headers: { Origin: 'http://127.0.0.1:1' } }],
    ['A cross-site request', STATS, { headers: { 'Sec-Fetch-Site': 'cross-site' } }],
    ['A same-site request', STATS, { headers: { 'Sec-Fetch-Site': 'same-site' } }],
    ['A write without an origin', BAN, { method: 'POST' }],
  ])('%s is refused with 403, and nothing reaches the Worker.', async (_, path, sent) => {
    const { status, headers, text } = await send(path, sent)
    expect(status).toBe(403)
    expect(headers).not.toHaveProperty('access-control-allow-origin')
    expect(JSON.parse(text).detail).toMatch(/\.$/)
    expect(worker.calls).toEqual([])
  })

  test.each([
    ['POST', '/_sluice/v1/decide'],
    ['POST', '/_sluice/v1/refund'],
    ['GET', '/_sluice/v1/policies/login/ban'],
    ['DELETE', '/_sluice/v1/policies/login/keys'],
    ['PUT', '/_sluice/v1/policies/login/reset'],
    ['PUT', '/_sluice/v1/policies/login/keys/../limit'],
    ['PUT', '/_sluice/v1/policies/login/keys/a/b/limit'],
    ['GET', '/_sluice/v1/policies/login/keys/x/limit'],
    ['GET', '/history'],
    ['GET', '/history?range=year'],
    ['POST', '/history?range=day'],
    ['GET', '/_sluice/v1/policies/../keys'],
    ['GET', '/_sluice/v1/policies/login/bans?after=1'],
    ['POST', '/_sluice/v1/policies/login/bans'],
    ['POST', '/_sluice/v1/stats'],
    ['GET', '/_sluice/v1/stats?x=1'],
    ['POST', '/_sluice/v1/policies/../ban'],
    ['POST', '/_sluice/v1/policies/%2e%2e/ban'],
    ['POST', '/_sluice/v1/policies/a/../../decide/ban'],
    ['GET', '//evil.example/_sluice/v1/stats'],
    ['GET', 'http://evil.example/_sluice/v1/stats'],
    ['GET', '/_sluice/v1/metrics'],
    ['GET', '/admin'],
    ['GET', '/__proto__'],
    ['GET', '/toString'],
  ])(
    '%s %s is not a call of the page: 404, and nothing reaches the Worker.',
    async (method, path) => {
      const { status } = await send(path, { method, headers: { Origin: dashboard.url } })
      expect(status).toBe(404)
      expect(worker.calls).toEqual([])
    },
  )

  test('A body above 64 KiB is refused with 413.', async () => {
    const body = JSON.stringify('x'.repeat(70_000))
    const { status } = await send(BAN, { method: 'POST', headers: { Origin: dashboard.url }, body })
    expect(status).toBe(413)
    expect(worker.calls).toEqual([])
  })

  test('The status and the wait of a refusal reach the page.', async () => {
    worker.answer = () => ({ status: 429, headers: { 'Retry-After': '7' }, body: { status: 429 } })
    const { status, headers, text } = await send(STATS)
    expect([status, headers['retry-after'], JSON.parse(text)]).toEqual([429, '7', { status: 429 }])
  })

  test('A redirect is not followed, because the token is for the Worker only.', async () => {
    const other = await startFakeWorker()
    worker.answer = () => ({
      status: 302,
      headers: { Location: `${other.url}${STATS}` },
      body: 'x',
    })
    const { status, text } = await send(STATS)
    expect([status, JSON.parse(text).detail]).toEqual([
      502,
      `${worker.url} answers 302 without JSON. Is this the address of the Worker?`,
    ])
    expect(other.calls).toEqual([])
    await other.close()
  })

  test('A page of another program is not shown.', async () => {
    worker.answer = () => ({ body: '<script>alert(1)</script>' })
    const { status, headers, text } = await send(STATS)
    expect([status, headers['content-type']]).toEqual([502, 'application/problem+json'])
    expect(text).not.toContain('alert')
  })

  test('A Worker that does not respond is reported with the reason.', async () => {
    const gone = await startFakeWorker()
    await gone.close()
    const lonely = await startDashboard({ url: gone.url, token: () => FAKE_TOKEN, port: 0 })
    const headers = { Cookie: await openSession(lonely) }
    const response = await fetch(`${lonely.url}${STATS}`, { headers })
    const { detail } = (await response.json()) as { detail: string }
    expect([response.status, detail]).toEqual([502, `${gone.url} does not respond: ECONNREFUSED.`])
    await lonely.close()
  })
})

describe('the session of the dashboard', () => {
  const secret = () => new URL(dashboard.address).hash.slice(1)
  const open = (body: string, headers: OutgoingHttpHeaders = { Origin: dashboard.url }) =>
    send('/session', { method: 'POST', headers: { Cookie: '', ...headers }, body })

  test.each<[string, () => string]>([
    ['no cookie', () => ''],
    ['the cookie of another port', () => cookie.replace('sluice-', 'sluice-1')],
    ['a wrong secret', () => `${cookie}x`],
    ['an empty secret', () => cookie.replace(/=.*/, '=')],
  ])(
    'With %s a user of this machine reaches neither the Worker nor the findings.',
    async (_, of) => {
      const Cookie = of()
      const answers = [
        await send('/about', { headers: { Cookie } }),
        await send(STATS, { headers: { Cookie } }),
        await send(BAN, { method: 'POST', headers: { Cookie, Origin: dashboard.url }, body: '{}' }),
      ]
      for (const { status, text } of answers) {
        expect(status).toBe(403)
        expect(JSON.parse(text).detail).toContain('Open the whole address that the command printed')
      }
      expect(worker.calls).toEqual([])
    },
  )

  test('The secret in the printed address is random, and opens a session by a cookie that pages cannot read.', async () => {
    const { status, headers } = await open(secret())
    expect(status).toBe(200)
    expect(headers['set-cookie']).toEqual([
      `sluice-${new URL(dashboard.url).port}=${secret()}; Path=/; HttpOnly; SameSite=Strict`,
    ])
    expect(secret()).toMatch(/^[\w-]{43}$/)
    const other = await startDashboard({ url: worker.url, token: () => FAKE_TOKEN, port: 0 })
    expect(other.address).not.toContain(secret())
    await other.close()
  })

  test('A wrong secret, and the right one from another site, open no session.', async () => {
    for (const { status, headers } of [
      await open(`${secret()}x`),
      await open(''),
      await open('x'.repeat(70_000)),
      await open(secret(), {}),
      await open(secret(), { Origin: 'https://evil.example' }),
    ]) {
      expect(status).toBe(403)
      expect(headers).not.toHaveProperty('set-cookie')
    }
  })
})

test('Of an endless answer of the Worker the dashboard reads 4 MiB.', async () => {
  let sent = 0
  const endless = createServer((_, response) => {
    response.writeHead(200, { 'Content-Type': 'application/json' })
    const chunk = Buffer.alloc(65_536, '1')
    const write = () => {
      do sent += chunk.length
      while (!response.destroyed && response.write(chunk))
    }
    response.on('drain', write)
    write()
  })
  await once(endless.listen(0, '127.0.0.1'), 'listening')
  const { port } = endless.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  const own = await startDashboard({ url, token: () => FAKE_TOKEN, port: 0 })
  const headers = { Cookie: await openSession(own) }
  const response = await fetch(`${own.url}${STATS}`, { headers })
  const { detail } = (await response.json()) as { detail: string }
  expect([response.status, detail]).toEqual([502, `${url} answers with more than 4 MiB.`])
  expect(sent).toBeLessThan(64 * 1024 * 1024)
  await own.close()
  endless.closeAllConnections()
  endless.close()
})

describe('npx sluice dashboard', () => {
  const url = ['--url', 'https://www.example.com']
  const address = 'an address that begins with https://, or with http:// on this machine'

  test.each([
    [[], '--url: expected the address of the Worker'],
    [['--url', 'www.example.com'], `--url: expected ${address}, got "www.example.com"`],
    [
      ['--url', 'http://www.example.com'],
      `--url: expected ${address}, got "http://www.example.com"`,
    ],
    [
      ['--url', 'https://www.example.com/app'],
      '--url: expected an address without a path, got "https://www.example.com/app"',
    ],
    [url, '--token: expected a token. Or set the variable SLUICE_OPERATE_TOKEN'],
    [[...url, '--token', 'a b'], '--token: expected visible ASCII characters'],
    [
      [...url, '--token', 'abc', '--port', '70000'],
      '--port: expected a whole number from 0 to 65535, got "70000"',
    ],
  ])('The arguments %j end with one line and exit code 2.', async (args, message) => {
    expect(await sluice(['dashboard', ...args], { env: { SLUICE_OPERATE_TOKEN: '' } })).toEqual({
      code: 2,
      stdout: '',
      stderr: `${message}. To list all options: npx sluice dashboard --help\n`,
    })
  })

  test('A port in use ends it with one line that names another port.', async () => {
    const { port } = new URL(dashboard.url)
    const args = ['dashboard', ...url, '--token', 'abc', '--port', port]
    expect(await run(process.execPath, ['cli/main.ts', ...args])).toMatchObject({
      code: 1,
      stderr: `Port ${port} is in use. Choose another one: --port ${Number(port) + 1}\n`,
    })
  })
})
