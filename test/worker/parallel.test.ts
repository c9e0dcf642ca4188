/** `check: 'parallel'` through the front door: the origin is asked while Redis decides, and nobody has its answer before the verdict. */
import { once } from 'node:events'
import { createServer, request as http, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import WebSocket, { WebSocketServer } from 'ws'
import { type Stack, startStack } from '../../dev/stack.ts'
import { startWorker } from '../../dev/worker.ts'
import type { ConfigOptions, PolicyOptions } from '../../src/config/options.ts'
import { rateLimiter } from '../../src/gateway/middleware.ts'
import { raw } from '../support/raw.ts'
import { startScripted } from '../support/scripted.ts'

const parallel = (name: string, limit = 1000, rest: Partial<PolicyOptions> = {}) =>
  ({
    name,
    limit,
    window: '1h',
    check: 'parallel',
    match: { path: `/${name}/*` },
    ...rest,
  }) satisfies PolicyOptions
const config: ConfigOptions = {
  deny: { path: '/denied/*' },
  allow: { path: '/free/*' },
  policies: [
    parallel('many'),
    parallel('once', 1),
    parallel('one', 1),
    parallel('two', 2),
    parallel('failures', 5, { countOnly: '4xx' }),
    parallel('priced', 100, { cost: { response: 'x-price', otherwise: 10 } }),
    parallel('mixed'),
    { name: 'other', limit: 1000, window: '1h', match: { path: '/mixed/before' } },
    parallel('trial', 1000, { mode: 'shadow', match: { path: '/mixed/shadow' } }),
    parallel('keyed', 1000, { key: 'header:x-key', onMissingKey: 'refuse' }),
    parallel('denied'),
    parallel('free'),
    parallel('strict', 1000, { onStoreError: 'deny' }),
    parallel('open', 1000, { onStoreError: 'allow' }),
  ],
}

/** What happened, in order. */
const events: string[] = []
const happened = (event: string) =>
  expect.poll(() => events.filter((one) => one === event).length, { timeout: 10_000 })

/** In front of the bridge: each call waits while `hold` says so. */
let holding: PromiseWithResolvers<void> | undefined
let broken = false
const hold = () => (holding = Promise.withResolvers())
const letGo = () => {
  holding?.resolve()
  holding = undefined
}
async function startHeld() {
  const server = createServer(async (request, response) => {
    const body = await text(request)
    if (body.startsWith('["GET"')) return // live policies, never told
    events.push('store asked')
    await holding?.promise
    if (broken) return request.socket.destroy()
    const { authorization = '' } = request.headers
    const answer = await fetch(stack.bridge.url + request.url, {
      method: 'POST',
      headers: { authorization },
      body,
    })
    events.push('store answers')
    response.end(await answer.text())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

/** An answer that begins and never ends. */
function dripping(response: ServerResponse) {
  response.writeHead(200).write('drip ')
  const timer = setInterval(() => response.write('drip '), 20)
  response.on('close', () => clearInterval(timer))
}

const anyConfig = fileURLToPath(new URL('../../dist/any-config', import.meta.url))
let stack: Stack
let env: Record<string, string>
let held: Awaited<ReturnType<typeof startHeld>>
let origin: Awaited<ReturnType<typeof startScripted>>
const kept: ServerResponse[] = []
beforeAll(async () => {
  held = await startHeld()
  origin = await startScripted(({ pathname }, response, { socket, headers }) => {
    events.push(`origin asked ${pathname}`)
    if (headers['sluice-shadow']) events.push(`origin told ${headers['sluice-shadow']}`)
    response.on('close', () => {
      events.push(response.writableFinished ? 'origin answered' : 'origin let go')
    })
    const what = pathname.split('/')[2]!
    if (what === 'keep') kept.push(response)
    else if (what === 'reset') socket.resetAndDestroy()
    else if (what === 'drip') dripping(response)
    else if (what === 'cut') {
      response.writeHead(200, { 'content-length': 1000 }).write('half')
      setTimeout(() => socket.resetAndDestroy(), 50)
    } else {
      response
        .writeHead(Number(what) || 200, { 'x-price': '3', 'set-cookie': ['a=1', 'b=2'] })
        .end(`the answer to ${pathname}`)
    }
  })
  const sockets = new WebSocketServer({ server: origin.server })
  sockets.on('connection', () => void events.push('origin asked for a socket'))
  env = { ORIGIN: origin.url, UPSTASH_REDIS_REST_URL: held.url }
  stack = await startStack({ config, env })
  env.UPSTASH_REDIS_REST_TOKEN = stack.bridge.token
})
afterEach(() => {
  letGo()
  broken = false
  events.length = 0
  for (const response of kept.splice(0)) response.destroy()
})
afterAll(async () => {
  await stack?.stop()
  await origin?.close()
  held?.server.closeAllConnections()
  held?.server.close()
})

/** Another Worker on the same stores and origin. */
const another = (change: Partial<ConfigOptions>) =>
  startWorker(anyConfig, {
    env: { ...env, CONFIG: JSON.stringify({ deadline: '10s', ...config, ...change }) },
  })

/** Past Miniflare's entry, which reads ahead. Settles with the answer's head. */
const send = (path: string, init: RequestInit = {}, worker = stack.worker) =>
  fetch(worker.directUrl + path, {
    ...init,
    headers: { 'cf-connecting-ip': '203.0.113.7', ...(init.headers as object) },
  })
/** An answer that is not there yet, and must not be. */
function sent(...request: Parameters<typeof send>) {
  const answer = send(...request)
  answer.catch(() => {})
  let settled = false
  const settle = () => {
    settled = true
  }
  answer.then(settle, settle)
  return { answer, isThere: () => settled }
}

test.each(['GET', 'HEAD', 'OPTIONS'])(
  '%s: the origin is asked while the store is, and its answer held back until the verdict',
  async (method) => {
    hold()
    const { answer, isThere } = sent('/many/x', { method })
    await happened('store asked').toBe(1)
    await happened('origin answered').toBe(1)
    await sleep(100)
    expect(isThere()).toBe(false)
    expect(events).not.toContain('store answers')
    letGo()
    const { status, headers, body } = await answer
    expect(status).toBe(200)
    expect(headers.get('ratelimit')).toMatch(/^"many";r=\d+;t=\d+$/)
    expect(headers.getSetCookie()).toEqual(['a=1', 'b=2'])
    if (method !== 'HEAD') expect(await new Response(body).text()).toBe('the answer to /many/x')
    expect(events.filter((event) => event.startsWith('origin asked'))).toHaveLength(1)
  },
)

test('a slow origin is waited for once the verdict is there', async () => {
  const { answer, isThere } = sent('/many/keep')
  await happened('store answers').toBe(1)
  await happened('origin asked /many/keep').toBe(1)
  await sleep(50)
  expect(isThere()).toBe(false)
  kept[0]!.end('late')
  expect(await (await answer).text()).toBe('late')
})

test('a refusal ends what the origin was asked; one that is proven never gets there', async () => {
  expect((await send('/once/x')).status).toBe(200)
  await happened('origin answered').toBe(1)
  const refused = await send('/once/keep')
  expect(refused.status).toBe(429)
  expect(refused.headers.get('content-type')).toBe('application/problem+json')
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(refused.headers.get('ratelimit')).toMatch(/^"once";r=0;t=\d+$/)
  expect(refused.headers.has('set-cookie')).toBe(false)
  expect(await refused.json()).toMatchObject({ 'violated-policies': ['once'] })
  expect(events).toContain('origin asked /once/keep')
  await happened('origin let go').toBe(1)
  events.length = 0
  for (let time = 0; time < 5; time++) expect((await send('/once/x')).status).toBe(429)
  await sleep(50)
  expect(events).toEqual([])
})

test.each([
  ['not begun', 'keep'],
  ['begun', 'drip'],
])(
  'a refusal ends an answer that has %s, also where the request has more to do',
  async (_, what) => {
    // A read of live policies that hangs: without it the end of the request would end all that it does.
    const busy = await another({ live: { from: 'redis', every: 1 } })
    const ip = { headers: { 'cf-connecting-ip': what === 'keep' ? '192.0.2.1' : '192.0.2.2' } }
    expect((await send('/one/x', ip, busy)).status).toBe(200)
    hold()
    const { answer } = sent(`/one/${what}`, ip, busy)
    await happened(`origin asked /one/${what}`).toBe(1)
    await happened('store asked').toBe(2)
    await sleep(100)
    letGo()
    expect((await answer).status).toBe(429)
    await expect.poll(() => events, { timeout: 2000 }).toContain('origin let go')
    await busy.stop()
  },
)

test.each([
  ['breaks off', 'reset', 502],
  ['is too late', 'keep', 504],
])('an origin that %s: the verdict comes first', async (_, what, status) => {
  const hasty = await another({ originTimeout: '300ms' })
  const ip = { headers: { 'cf-connecting-ip': `203.0.113.${status - 400}` } }
  hold()
  const first = sent(`/one/${what}`, ip, hasty)
  await happened('origin let go').toBe(1)
  await sleep(100)
  expect(first.isThere()).toBe(false)
  letGo()
  const answer = await first.answer
  expect(answer.status).toBe(status)
  expect(answer.headers.get('ratelimit-policy')).toBe('"one";q=1;w=3600')
  hold()
  const second = sent(`/one/${what}`, ip, hasty)
  await happened('origin let go').toBe(2)
  letGo()
  expect((await second.answer).status).toBe(429)
  await hasty.stop()
})

test('a body that the origin breaks off is broken', async () => {
  const answer = await send('/many/cut')
  expect(answer.status).toBe(200)
  await expect(answer.text()).rejects.toThrow()
})

test.each<[string, () => unknown]>([
  ['POST', () => send('/many/x', { method: 'POST', body: 'a' })],
  ['POST without a body', () => send('/many/x', { method: 'POST' })],
  ['DELETE', () => send('/many/x', { method: 'DELETE' })],
  [
    'GET with a body',
    () =>
      raw(
        stack.worker.directUrl,
        'GET /many/x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi',
      ),
  ],
  [
    'a web socket',
    async () => {
      const url = `${stack.worker.directUrl.replace('http', 'ws')}/many/socket`
      const socket = new WebSocket(url)
      await once(socket, 'open')
      socket.terminate()
    },
  ],
  ['a request that meets a policy with a check before', () => send('/mixed/before')],
  ['a request that meets a policy in shadow', () => send('/mixed/shadow')],
])('%s waits for the verdict', async (_, ask) => {
  hold()
  const answer = ask()
  const order = () => events.filter((event) => /^(store answers|origin asked)/.test(event))
  try {
    await happened('store asked').toBe(1)
    await sleep(100)
    expect(order()).toEqual([])
  } finally {
    letGo()
    await answer
  }
  expect(order()).toEqual(['store answers', expect.stringMatching(/^origin asked/)])
})

test('whom a list denies, or who lacks a key that is asked for, never reaches the origin', async () => {
  expect((await send('/denied/x')).status).toBe(403)
  expect((await send('/keyed/x')).status).toBe(403)
  expect((await send('/keyed/x', { headers: { 'x-key': 'a' } })).status).toBe(200)
  expect((await send('/free/x')).status).toBe(200)
  expect(events.filter((event) => event.startsWith('origin asked'))).toEqual([
    'origin asked /keyed/x',
    'origin asked /free/x',
  ])
})

test('answers that do not count are given back, whichever came first', async () => {
  const left = async (path: string) => {
    const answer = await send(path)
    await answer.text()
    return Number(/;r=(\d+)/.exec(answer.headers.get('ratelimit')!)![1])
  }
  const whenSettled = (path: string, expected: number) =>
    expect.poll(() => left(path), { timeout: 10_000, interval: 100 }).toBe(expected)
  hold()
  const early = sent('/failures/200')
  await happened('origin answered').toBe(1)
  letGo()
  await early.answer
  await whenSettled('/failures/200', 4) // its own place, until it is given back
  await left('/failures/404')
  await whenSettled('/failures/200', 3)
  expect(await left('/priced/x')).toBe(90)
  await expect.poll(() => left('/priced/x'), { timeout: 10_000, interval: 500 }).toBeGreaterThan(80)
})

test('the store fails: as the policies say, and nobody has an answer who is denied', async () => {
  broken = true
  const denied = await send('/strict/keep')
  expect(denied.status).toBe(503)
  await happened('origin let go').toBe(1)
  const allowed = await send('/open/x')
  expect([allowed.status, await allowed.text()]).toEqual([200, 'the answer to /open/x'])
})

// workerd by itself learns of it when it writes, Cloudflare's network sooner.
test.each([
  ['before the verdict', true],
  ['before the origin answers', false],
])('a client that hangs up %s leaves nothing behind', async (_, isHeld) => {
  if (isHeld) hold()
  const path = isHeld ? '/many/drip' : '/many/keep'
  const outgoing = http(stack.worker.directUrl + path, { agent: false })
  outgoing.on('error', () => {})
  outgoing.end()
  await happened(`origin asked ${path}`).toBe(1)
  await happened(isHeld ? 'store asked' : 'store answers').toBe(1)
  outgoing.destroy()
  await sleep(50)
  if (isHeld) letGo()
  else dripping(kept[0]!)
  await happened('origin let go').toBe(1)
  expect((await send('/many/x')).status).toBe(200)
})

test('many at once: as many pass as there is room for, and the others’ exchanges are ended', async () => {
  const ip = { headers: { 'cf-connecting-ip': '203.0.113.9' } }
  const answers = await Promise.all(Array.from({ length: 50 }, () => send('/two/x', ip)))
  const statuses = answers.map(({ status }) => status)
  expect(statuses.filter((status) => status === 200)).toHaveLength(2)
  expect(statuses.filter((status) => status === 429)).toHaveLength(48)
})

test('nothing was left unhandled', () => {
  const lines = stack.worker.logs.map((line) => line.replace(/.*"event":"store-error".*/, 'known'))
  expect(lines.filter((line) => line !== 'known')).toEqual([])
})

test('the middleware has no origin to ask, and says so', () => {
  expect(() => rateLimiter({ policies: [parallel('a')] })).toThrow(
    'policies[0].check: expected before (rateLimiter has no origin to call in parallel), got "parallel"',
  )
})
