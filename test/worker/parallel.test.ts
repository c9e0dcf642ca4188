/** `check: 'parallel'` in workerd: aborted requests, clients that hang up, and requests that fetch of Node cannot send. */
import { once } from 'node:events'
import { createServer, request as http, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import WebSocket, { WebSocketServer } from 'ws'
import type { Stack } from '../../dev/stack.ts'
import type { ConfigOptions, PolicyOptions } from '../../src/core/config/options.ts'
import { raw } from '../support/raw-http.ts'
import { end, startScriptedOrigin } from '../support/scripted-origin.ts'
import { startStack } from '../support/stack.ts'

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
  policies: [parallel('many'), parallel('one', 1)],
  // The background work of a request: a read that hangs.
  live: { from: 'redis', every: 1 },
}

/** Events of the store and the origin, in order. */
const events: string[] = []
const happened = (event: string) => expect.poll(() => events.filter((one) => one === event).length)

/** A proxy in front of the bridge. Between `hold` and `release`, calls wait. */
let holding: PromiseWithResolvers<void> | undefined
const hold = () => (holding = Promise.withResolvers())
const release = () => {
  holding?.resolve()
  holding = undefined
}
async function startHeld() {
  const server = createServer(async (request, response) => {
    const body = await text(request)
    if (/^\["get"/i.test(body)) return // live policies: never answered
    events.push('store called')
    await holding?.promise
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

let stack: Stack
let held: Awaited<ReturnType<typeof startHeld>>
let origin: Awaited<ReturnType<typeof startScriptedOrigin>>
const unfinished: ServerResponse[] = []
beforeAll(async () => {
  held = await startHeld()
  origin = await startScriptedOrigin(({ pathname }, response) => {
    events.push(`origin called ${pathname}`)
    response.on('close', () => {
      events.push(response.writableFinished ? 'origin answered' : 'origin aborted')
    })
    const behaviour = pathname.split('/')[2]!
    if (behaviour === 'keep') unfinished.push(response)
    else if (behaviour === 'drip') dripping(response)
    else if (behaviour === 'half') {
      response.writeHead(200, { 'content-length': 1000 }).write('half')
      unfinished.push(response)
    } else response.end(`the answer to ${pathname}`)
  })
  const sockets = new WebSocketServer({ server: origin.server })
  sockets.on('connection', () => void events.push('origin called for a socket'))
  const env = { ORIGIN: origin.url, UPSTASH_REDIS_REST_URL: held.url }
  stack = await startStack({ config, env })
})
afterEach(async () => {
  release()
  await end(unfinished)
  events.length = 0
})
afterAll(async () => {
  await stack?.stop()
  await origin?.close()
  held?.server.closeAllConnections()
  held?.server.close()
})

/** Sends a request directly to workerd, because Miniflare's entry reads ahead. Resolves with the head of the response. */
const send = (path: string, ip = '203.0.113.7') =>
  fetch(stack.worker.directUrl + path, { headers: { 'cf-connecting-ip': ip } })

test.each([
  ['has not begun', 'keep', '198.51.100.1'],
  ['has begun', 'drip', '198.51.100.2'],
])(
  'A refusal aborts a response that %s, also while the request has background work.',
  async (_, behaviour, ip) => {
    // Without the background work, workerd aborts everything at the end of the request.
    expect((await send('/one/x', ip)).status).toBe(200)
    hold()
    const answer = send(`/one/${behaviour}`, ip)
    await happened(`origin called /one/${behaviour}`).toBe(1)
    await happened('store called').toBe(2)
    await sleep(100)
    release()
    expect((await answer).status).toBe(429)
    // The read ends after 5 s, and then workerd would abort everything.
    await expect.poll(() => events, { timeout: 4000 }).toContain('origin aborted')
  },
)

test.each<[string, () => unknown]>([
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

test('With check parallel workerd logs no unhandled error.', () => {
  const events = stack.worker.logs.map((line) => /"event":"([\w-]+)"/.exec(line)?.[1] ?? line)
  expect(events.filter((event) => event !== 'live-unread')).toEqual([])
})
