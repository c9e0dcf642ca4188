/** `check: 'parallel'`: the origin gets the request while Redis decides, and its response is held back until the decision. */
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
import { raw } from '../support/raw-http.ts'
import { startScriptedOrigin } from '../support/scripted-origin.ts'

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

/** Events of the store and the origin, in order. */
const events: string[] = []
const happened = (event: string) =>
  expect.poll(() => events.filter((one) => one === event).length, { timeout: 10_000 })

/** A proxy in front of the bridge. Between `hold` and `release`, calls wait. */
let holding: PromiseWithResolvers<void> | undefined
let broken = false
const hold = () => (holding = Promise.withResolvers())
const release = () => {
  holding?.resolve()
  holding = undefined
}
async function startHeld() {
  const server = createServer(async (request, response) => {
    const body = await text(request)
    if (body.startsWith('["GET"')) return // live policies: never answered
    events.push('store called')
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

/** Starts a response that never ends. */
function dripping(response: ServerResponse) {
  response.writeHead(200).write('drip ')
  const timer = setInterval(() => response.write('drip '), 20)
  response.on('close', () => clearInterval(timer))
}

const anyConfig = fileURLToPath(new URL('../../.cache/workers/any-config', import.meta.url))
let stack: Stack
let env: Record<string, string>
let held: Awaited<ReturnType<typeof startHeld>>
let origin: Awaited<ReturnType<typeof startScriptedOrigin>>
const unfinished: ServerResponse[] = []
beforeAll(async () => {
  held = await startHeld()
  origin = await startScriptedOrigin(({ pathname }, response, { socket, headers }) => {
    events.push(`origin called ${pathname}`)
    if (headers['sluice-shadow']) events.push(`origin got shadow ${headers['sluice-shadow']}`)
    response.on('close', () => {
      events.push(response.writableFinished ? 'origin answered' : 'origin aborted')
    })
    const behaviour = pathname.split('/')[2]!
    if (behaviour === 'keep') unfinished.push(response)
    else if (behaviour === 'reset') socket.resetAndDestroy()
    else if (behaviour === 'drip') dripping(response)
    else if (behaviour === 'cut') {
      response.writeHead(200, { 'content-length': 1000 }).write('half')
      setTimeout(() => socket.resetAndDestroy(), 50)
    } else {
      response
        .writeHead(Number(behaviour) || 200, { 'x-price': '3', 'set-cookie': ['a=1', 'b=2'] })
        .end(`the answer to ${pathname}`)
    }
  })
  const sockets = new WebSocketServer({ server: origin.server })
  sockets.on('connection', () => void events.push('origin called for a socket'))
  env = { ORIGIN: origin.url, UPSTASH_REDIS_REST_URL: held.url }
  stack = await startStack({ config, env })
  env.UPSTASH_REDIS_REST_TOKEN = stack.bridge.token
})
afterEach(() => {
  release()
  broken = false
  events.length = 0
  for (const response of unfinished.splice(0)) response.destroy()
})
afterAll(async () => {
  await stack?.stop()
  await origin?.close()
  held?.server.closeAllConnections()
  held?.server.close()
})

/** Starts another Worker with the same store and origin. */
const another = (change: Partial<ConfigOptions>) =>
  startWorker(anyConfig, {
    env: { ...env, CONFIG: JSON.stringify({ deadline: '10s', ...config, ...change }) },
  })

/** Sends a request directly to workerd, because Miniflare's entry reads ahead. Resolves with the head of the response. */
const send = (path: string, init: RequestInit = {}, worker = stack.worker) =>
  fetch(worker.directUrl + path, {
    ...init,
    headers: { 'cf-connecting-ip': '203.0.113.7', ...(init.headers as object) },
  })
/** Sends a request. `isThere` is true once the response has arrived. */
function sendAndObserve(...request: Parameters<typeof send>) {
  const answer = send(...request)
  answer.catch(() => {})
  let settled = false
  const settle = () => {
    settled = true
  }
  answer.then(settle, settle)
  return { answer, isThere: () => settled }
}

let clients = 0
const newClient = () => ({ headers: { 'cf-connecting-ip': `198.51.100.${++clients}` } })

test.each(['GET', 'HEAD', 'OPTIONS'])(
  'A %s request reaches the origin while the store decides, and the response is held back until the decision.',
  async (method) => {
    hold()
    const { answer, isThere } = sendAndObserve('/many/x', { method })
    await happened('store called').toBe(1)
    await happened('origin answered').toBe(1)
    await sleep(100)
    expect(isThere()).toBe(false)
    expect(events).not.toContain('store answers')
    release()
    const { status, headers, body } = await answer
    expect(status).toBe(200)
    expect(headers.get('ratelimit')).toMatch(/^"many";r=\d+;t=\d+$/)
    expect(headers.getSetCookie()).toEqual(['a=1', 'b=2'])
    if (method !== 'HEAD') expect(await new Response(body).text()).toBe('the answer to /many/x')
    expect(events.filter((event) => event.startsWith('origin called'))).toHaveLength(1)
  },
)

test('After the decision, the Worker waits for a slow origin.', async () => {
  const { answer, isThere } = sendAndObserve('/many/keep')
  await happened('store answers').toBe(1)
  await happened('origin called /many/keep').toBe(1)
  await sleep(50)
  expect(isThere()).toBe(false)
  unfinished[0]!.end('late')
  expect(await (await answer).text()).toBe('late')
})

test('A refusal aborts the request to the origin, and a refusal from the denial cache never reaches it.', async () => {
  expect((await send('/once/x')).status).toBe(200)
  await happened('origin answered').toBe(1)
  const refused = await send('/once/keep')
  expect(refused.status).toBe(429)
  expect(refused.headers.get('content-type')).toBe('application/problem+json')
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(refused.headers.get('ratelimit')).toMatch(/^"once";r=0;t=\d+$/)
  expect(refused.headers.has('set-cookie')).toBe(false)
  expect(await refused.json()).toMatchObject({ 'violated-policies': ['once'] })
  expect(events).toContain('origin called /once/keep')
  await happened('origin aborted').toBe(1)
  events.length = 0
  for (let time = 0; time < 5; time++) expect((await send('/once/x')).status).toBe(429)
  await sleep(50)
  expect(events).toEqual([])
})

test.each([
  ['has not begun', 'keep'],
  ['has begun', 'drip'],
])(
  'A refusal aborts a response that %s, also while the request has background work.',
  async (_, behaviour) => {
    // The background work is a read of live policies that hangs. Without it, workerd aborts everything at the end of the request.
    const busy = await another({ live: { from: 'redis', every: 1 } })
    const client = newClient()
    expect((await send('/one/x', client, busy)).status).toBe(200)
    hold()
    const { answer } = sendAndObserve(`/one/${behaviour}`, client, busy)
    await happened(`origin called /one/${behaviour}`).toBe(1)
    await happened('store called').toBe(2)
    await sleep(100)
    release()
    expect((await answer).status).toBe(429)
    // The read ends after 5 s, and then workerd would abort everything.
    await expect.poll(() => events, { timeout: 4000 }).toContain('origin aborted')
    await busy.stop()
  },
)

test.each([
  ['resets the connection', 'reset', 502],
  ['is too late', 'keep', 504],
])(
  'If the origin %s, the client gets the error only if the request is admitted.',
  async (_, behaviour, status) => {
    const hasty = await another({ originTimeout: behaviour === 'keep' ? '300ms' : '10s' })
    const client = newClient()
    hold()
    const first = sendAndObserve(`/one/${behaviour}`, client, hasty)
    await happened('origin aborted').toBe(1)
    await sleep(100)
    expect(first.isThere()).toBe(false)
    release()
    const answer = await first.answer
    expect(answer.status).toBe(status)
    expect(answer.headers.get('ratelimit-policy')).toBe('"one";q=1;w=3600')
    hold()
    const second = sendAndObserve(`/one/${behaviour}`, client, hasty)
    await happened('origin aborted').toBe(2)
    release()
    expect((await second.answer).status).toBe(429)
    await hasty.stop()
  },
)

test('A body that the origin breaks off fails for the client, also with check parallel.', async () => {
  const answer = await send('/many/cut')
  expect(answer.status).toBe(200)
  await expect(answer.text()).rejects.toThrow()
})

test.each<[string, () => unknown]>([
  ['A POST request', () => send('/many/x', { method: 'POST', body: 'a' })],
  ['A POST request without a body', () => send('/many/x', { method: 'POST' })],
  ['A DELETE request', () => send('/many/x', { method: 'DELETE' })],
  [
    'A GET request with a body',
    () =>
      raw(
        stack.worker.directUrl,
        'GET /many/x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi',
      ),
  ],
  [
    'A WebSocket request',
    async () => {
      const url = `${stack.worker.directUrl.replace('http', 'ws')}/many/socket`
      const socket = new WebSocket(url)
      await once(socket, 'open')
      socket.terminate()
    },
  ],
  ['A request with a policy with check before', () => send('/mixed/before')],
  ['A request with a shadow policy', () => send('/mixed/shadow')],
])('%s reaches the origin only after the decision.', async (_, sendRequest) => {
  hold()
  const answer = sendRequest()
  const order = () => events.filter((event) => /^(store answers|origin called)/.test(event))
  try {
    await happened('store called').toBe(1)
    await sleep(100)
    expect(order()).toEqual([])
  } finally {
    release()
    await answer
  }
  expect(order()).toEqual(['store answers', expect.stringMatching(/^origin called/)])
})

test('A request on a deny list, or without a required key, never reaches the origin.', async () => {
  expect((await send('/denied/x')).status).toBe(403)
  expect((await send('/keyed/x')).status).toBe(403)
  expect((await send('/keyed/x', { headers: { 'x-key': 'a' } })).status).toBe(200)
  expect((await send('/free/x')).status).toBe(200)
  expect(events.filter((event) => event.startsWith('origin called'))).toEqual([
    'origin called /keyed/x',
    'origin called /free/x',
  ])
})

test('Responses that do not count are refunded, whether the origin or the store answers first.', async () => {
  const left = async (path: string) => {
    const answer = await send(path)
    await answer.text()
    return Number(/;r=(\d+)/.exec(answer.headers.get('ratelimit')!)![1])
  }
  const whenSettled = (path: string, expected: number) =>
    expect.poll(() => left(path), { timeout: 10_000, interval: 100 }).toBe(expected)
  hold()
  const early = sendAndObserve('/failures/200')
  await happened('origin answered').toBe(1)
  release()
  await early.answer
  await whenSettled('/failures/200', 4) // this request is charged until its refund
  await left('/failures/404')
  await whenSettled('/failures/200', 3)
  expect(await left('/priced/x')).toBe(90)
  await expect.poll(() => left('/priced/x'), { timeout: 10_000, interval: 500 }).toBeGreaterThan(80)
})

test('If the store fails, onStoreError decides, and a denied client gets no response of the origin.', async () => {
  broken = true
  const denied = await send('/strict/keep')
  expect(denied.status).toBe(503)
  await happened('origin aborted').toBe(1)
  const allowed = await send('/open/x')
  expect([allowed.status, await allowed.text()]).toEqual([200, 'the answer to /open/x'])
})

// workerd notices a closed connection when it writes. Cloudflare's network notices it sooner.
test.each([
  ['before the verdict', true],
  ['before the origin answers', false],
])('If a client hangs up %s, its request to the origin is aborted.', async (_, isHeld) => {
  if (isHeld) hold()
  const path = isHeld ? '/many/drip' : '/many/keep'
  const outgoing = http(stack.worker.directUrl + path, { agent: false })
  outgoing.on('error', () => {})
  outgoing.end()
  await happened(`origin called ${path}`).toBe(1)
  await happened(isHeld ? 'store called' : 'store answers').toBe(1)
  outgoing.destroy()
  await sleep(50)
  if (isHeld) release()
  else dripping(unfinished[0]!)
  await happened('origin aborted').toBe(1)
  expect((await send('/many/x')).status).toBe(200)
})

test('With check parallel exactly the limit of 50 concurrent requests is admitted.', async () => {
  const ip = { headers: { 'cf-connecting-ip': '203.0.113.9' } }
  const answers = await Promise.all(Array.from({ length: 50 }, () => send('/two/x', ip)))
  const statuses = answers.map(({ status }) => status)
  expect(statuses.filter((status) => status === 200)).toHaveLength(2)
  expect(statuses.filter((status) => status === 429)).toHaveLength(48)
})

test('With check parallel workerd logs no unhandled error.', () => {
  const lines = stack.worker.logs.map((line) => line.replace(/.*"event":"store-error".*/, 'known'))
  expect(lines.filter((line) => line !== 'known')).toEqual([])
})

test('The middleware rejects check parallel, because it has no origin.', () => {
  expect(() => rateLimiter({ policies: [parallel('a')] })).toThrow(
    'policies[0].check: expected before (only the gateway has an origin to call in parallel), got "parallel"',
  )
})
