/** What `sluice verify` says of servers that do not answer as a deployment should. */
import { execFileSync } from 'node:child_process'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { Hono } from 'hono'
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createClient, newNonce } from '../../cli/verify/client.ts'
import { checkOrigin } from '../../cli/verify/origin.ts'
import { type VerifyOptions, verifyDeployment } from '../../cli/verify/run.ts'
import { parseConfig } from '../../src/core/config/parse.ts'
import { defaultFields } from '../../src/features/defaults.ts'
import { verify } from '../../src/features/verify/index.ts'
import { rateLimiter } from '../../src/hosts/node/node.ts'
import { rateLimiter as honoRateLimiter } from '../../src/index.ts'
import { sluice } from '../support/dev-command.ts'
import { configOf, listen, useDatabase } from '../support/node-servers.ts'

const TOKEN = 'a-token-to-verify-with'
useDatabase()
beforeAll(() => void Object.assign(process.env, { SLUICE_VERIFY_TOKEN: TOKEN }))

const policy = { name: 'all', algorithm: 'fixed-window', limit: 3, window: '1h' } as const
const start = (listener: RequestListener) => listen(createServer(listener))

async function findingsOf(url: string, options: object, more: Partial<VerifyOptions> = {}) {
  const config = parseConfig(options, defaultFields)
  const findings = await verifyDeployment({ url, token: TOKEN, config, maxWaitMs: 0, ...more })
  return findings
}
const problemsOf = async (...args: Parameters<typeof findingsOf>) =>
  (await findingsOf(...args))
    .filter(({ status }) => status === 'problem')
    .map(({ name, text }) => `${name}: ${text}`)

/** Starts an app with a limiter. */
function startApp(use = [verify()]) {
  const options = configOf({ policies: [policy], use })
  const limit = rateLimiter(options)
  const url = start(async (request, response) => {
    if (await limit(request, response)) response.end('ok')
  })
  return { options, url }
}

const plainOptions = { policies: [policy] }

describe('the address on the command line', () => {
  const run = (...args: string[]) =>
    sluice(['verify', ...args, '--token', TOKEN], { env: { SLUICE_VERIFY_TOKEN: TOKEN } })

  test('An address without a protocol is that of a server of this machine, also for --origin.', async () => {
    const { url } = startApp()
    const { port } = new URL(await url)
    for (const address of [`localhost:${port}`, `127.0.0.1:${port}`]) {
      const { stdout, stderr } = await run(address, '--origin', address)
      expect(stderr).toBe('')
      expect(stdout).toMatch(/^✓ origin +http:\/\/\S+ answers through Sluice$/m)
    }
  })

  test.each([
    [['example.invalid:1'], 'https://example.invalid:1'],
    [['[::1]:1'], 'http://[::1]:1'],
  ])('The protocol of %j is that of %s.', async (args, shown) => {
    expect((await run(...args)).stderr).toContain(`${shown} is not answered`)
  })

  test.each([
    [['ftp://127.0.0.1'], 'expected an address that begins with https://'],
    [['http://127.0.0.1', '--path', 'api/things'], '--path: expected a path like /api/things'],
    [['http://127.0.0.1', '--path', 'POST  /x'], '--path: expected a path like /api/things'],
    [['http://127.0.0.1', '--path', '/x#y'], '--path: expected a path like /api/things'],
  ])('The arguments %j are a mistake that is explained.', async (args, text) => {
    const { code, stderr } = await run(...args)
    expect(code).toBe(2)
    expect(stderr).toContain(text)
  })
})

test('A redirect to another address names that address.', async () => {
  const url = await start((_, response) =>
    response.writeHead(301, { location: 'https://www.example.com/any' }).end(),
  )
  expect(await problemsOf(url, plainOptions)).toEqual([
    `verify: ${url} redirects to https://www.example.com: run sluice verify with that address`,
  ])
})

test('A redirect in front of the limiter is found, with its target.', async () => {
  const url = await start((_, response) => response.writeHead(308, { location: '/en/' }).end())
  expect(await problemsOf(url, plainOptions)).toEqual([
    'all: not limited: GET / is redirected (308) to /en/ without Sluice. Put the limiter before the redirect, or run sluice verify with the address behind it',
  ])
})

test('A body that never ends ends the check of its policy only.', async () => {
  const url = await start((_, response) => void response.write('x'.repeat(100_000)))
  expect(await problemsOf(url, plainOptions)).toEqual([
    expect.stringMatching(/^all: not limited: GET \/ answers 200 without Sluice/),
  ])
})

test('A server that is slow is named with the time that was waited for.', async () => {
  const url = await start(() => {})
  const client = createClient({ url, token: TOKEN, headers: {}, through: false, timeoutMs: 200 })
  const request = { method: 'GET', path: '/slow', headers: {} }
  await expect(client.send(request, { nonce: newNonce() })).rejects.toThrow(
    `GET ${url}/slow is not answered: no answer within 200ms`,
  )
})

test('A request without an answer is a problem of its policy, and the other checks go on.', async () => {
  const login = { ...policy, name: 'login', match: { path: '/login', method: 'POST' } }
  const options = configOf({ policies: [policy, login], use: [verify()] })
  const limit = rateLimiter(options)
  const url = await start(async (request, response) => {
    if (request.method === 'POST') request.socket.destroy()
    else if (await limit(request, response)) response.end('ok')
  })
  const findings = await findingsOf(url, options)
  expect(findings.filter(({ status }) => status === 'ok').map(({ name }) => name)).toEqual(
    expect.arrayContaining(['all', 'shared', 'configuration', 'store', 'clock']),
  )
  expect(findings.filter(({ status }) => status === 'problem')).toEqual([
    {
      name: 'login',
      status: 'problem',
      text: expect.stringContaining(`POST ${url}/login is not answered: `),
    },
  ])
})

test('An app without verify() is told from one without a limiter.', async () => {
  const { options, url } = startApp([])
  expect(await problemsOf(await url, options)).toEqual([
    expect.stringMatching(
      /^all: GET \/ is limited as that of any client: Sluice does not recognize this command/,
    ),
  ])
})

test('An isolate that verifies no more requests for now is no problem of its policies.', async () => {
  const options = configOf({ policies: [policy], use: [verify()] })
  const app = new Hono().use(honoRateLimiter(options)).get('*', (c) => c.text('ok'))
  const target = 'https://app.example.com'
  // Without HTTP, since 2,000 requests take long.
  const { fetch } = globalThis
  const socket = { remoteAddress: '127.0.0.1' }
  vi.stubGlobal('fetch', (url: string, init: RequestInit) =>
    url.startsWith(target)
      ? app.fetch(new Request(url, init), { incoming: { socket } })
      : fetch(url, init),
  )
  onTestFinished(() => void vi.unstubAllGlobals())
  const minute = Math.floor(Date.now() / 60_000)
  const client = createClient({ url: target, token: TOKEN, headers: {}, through: false })
  // The whole check is in one minute, in which 1,998 requests have been verified.
  vi.useFakeTimers({ toFake: ['Date'], now: minute * 60_000 + 1_000 })
  onTestFinished(() => void vi.useRealTimers())
  const request = { method: 'GET', path: '/', headers: {} }
  for (let count = 0; count < 1_998; count += 222) {
    const nonce = newNonce()
    await Promise.all(Array.from({ length: 222 }, () => client.send(request, { nonce })))
  }
  const findings = await findingsOf(target, options)
  expect(findings.find(({ name }) => name === 'all')).toEqual({
    name: 'all',
    status: 'unknown',
    text: 'not checked: the deployment has verified 2,000 requests in this minute. Run sluice verify again in a minute',
  })
  expect(await problemsOf(target, options)).toEqual([
    'verify: the deployment has verified 2,000 requests in this minute. Run sluice verify again in a minute',
  ])
})

test('A challenge of Cloudflare in front is not a policy that limits nobody.', async () => {
  const url = await start((_, response) =>
    response.writeHead(403, { 'cf-mitigated': 'challenge' }).end(),
  )
  expect((await findingsOf(url, plainOptions))[0]).toEqual({
    name: 'all',
    status: 'unknown',
    text: 'not checked: Cloudflare challenges GET / before Sluice. Exempt this machine from the rule',
  })
})

test('The words of a server cannot control the terminal.', async () => {
  const detail = `\u001b[2J\u0007gone${'.'.repeat(5_000)}`
  const url = await start((_, response) => response.writeHead(503).end(JSON.stringify({ detail })))
  const [text] = await problemsOf(url, plainOptions)
  expect(text).toMatch(/^verify: the deployment answers 503: \ufffd\[2J\ufffdgone\.+$/)
  expect(text!.length).toBeLessThan(400)
})

test('A path of the address is one that a proxy removes.', async () => {
  const { options, url } = startApp()
  const target = await url
  const proxy = await start((request, response) => {
    const path = request.url!.replace(/^\/gate(?=\/)/, '')
    if (path === request.url) return void response.writeHead(404).end()
    const headers = request.headers as Record<string, string>
    fetch(target + path, { method: request.method!, headers }).then(async (answer) => {
      response.writeHead(answer.status, Object.fromEntries(answer.headers))
      response.end(answer.status === 204 ? undefined : await answer.text())
    })
  })
  expect(await problemsOf(`${proxy}/gate`, options)).toEqual([])
  expect(await problemsOf(`${proxy}/other`, options)).toEqual([
    expect.stringMatching(
      /^verify: \/_sluice\/v1\/verify answers 404 without Sluice.*Write the address without its path$/,
    ),
  ])
})

/** A certificate that no authority has signed. */
function selfSigned() {
  const text = execFileSync(
    'openssl',
    'req -x509 -newkey rsa:2048 -nodes -keyout - -subj /CN=localhost -days 2'.split(' '),
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] },
  )
  return { key: text, cert: text }
}

const startTls = async (listener: RequestListener) =>
  (await listen(createTlsServer(selfSigned(), listener))).replace('http:', 'https:')

test('A certificate that is not trusted says what to set.', async () => {
  const url = await startTls((_, response) => void response.end())
  await expect(problemsOf(url, plainOptions)).rejects.toThrow(
    /is not answered: its certificate is not trusted \([A-Z_]+\)\. For an authority of your own, set NODE_EXTRA_CA_CERTS/,
  )
  const plain = url.replace('https:', 'http:')
  await expect(problemsOf(plain, plainOptions)).rejects.toThrow(`${plain} is not answered: `)
  const noTls = (await start((_, response) => void response.end())).replace('http:', 'https:')
  await expect(problemsOf(noTls, plainOptions)).rejects.toThrow(
    'the port does not speak TLS. Write http:// for it',
  )
})

test('An origin with a certificate that is not trusted is open all the same.', async () => {
  const origin = await startTls((_, response) => void response.end('ok'))
  expect(await checkOrigin(origin, 'www.example.com')).toEqual({
    name: 'origin',
    status: 'problem',
    text: `${origin} answers 200 without Sluice: a client can go around it. Let the origin accept only requests of the Worker`,
  })
})

test('An origin that answers for the host of the deployment only is open.', async () => {
  const origin = await start((request, response) =>
    response.writeHead(request.headers.host === 'www.example.com' ? 200 : 403).end(),
  )
  expect(await checkOrigin(origin, 'www.example.com')).toMatchObject({ status: 'problem' })
  expect(await checkOrigin(origin, 'other.example.com')).toEqual({
    name: 'origin',
    status: 'ok',
    text: `${origin} refuses requests without Sluice (403)`,
  })
})

test('An origin that redirects to the deployment is closed.', async () => {
  const location = 'https://www.example.com/'
  const origin = await start((_, response) => response.writeHead(301, { location }).end())
  expect(await checkOrigin(origin, 'www.example.com')).toEqual({
    name: 'origin',
    status: 'ok',
    text: `${origin} redirects to www.example.com`,
  })
  expect(await checkOrigin(origin, 'shop.example.com')).toMatchObject({ status: 'problem' })
})
