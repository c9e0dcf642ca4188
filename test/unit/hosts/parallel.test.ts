/** `check: 'parallel'`: which requests reach the origin before the decision, and what becomes of them. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { FetchOptions } from '../../../dev/stack.ts'
import type { PolicyOptions } from '../../../src/core/config/options.ts'
import { rateLimiter } from '../../../src/hosts/app/middleware.ts'
import { useGateway } from '../../support/gateway.ts'
import { end, startScriptedOrigin } from '../../support/scripted-origin.ts'

const parallel = (name: string, limit = 1000, rest: Partial<PolicyOptions> = {}) =>
  ({
    name,
    limit,
    window: '1h',
    check: 'parallel',
    match: { path: `/${name}/*` },
    ...rest,
  }) satisfies PolicyOptions
const config = {
  deny: { path: '/denied/*' },
  allow: { path: '/free/*' },
  policies: [
    parallel('many'),
    parallel('once', 1),
    parallel('two', 1),
    parallel('failures', 5, { countOnly: '4xx' }),
    parallel('mixed'),
    { name: 'other', limit: 1000, window: '1h' as const, match: { path: '/mixed/before' } },
    parallel('trial', 1000, { mode: 'shadow', match: { path: '/mixed/shadow' } }),
    parallel('keyed', 1000, { key: 'header:x-key', onMissingKey: 'refuse' }),
    parallel('denied'),
    parallel('free'),
    parallel('strict', 1000, { onStoreError: 'deny' }),
    parallel('open', 1000, { onStoreError: 'allow' }),
  ],
}
const gateway = useGateway({ config })

/** Events of the store and the origin, in order. */
const events: string[] = []
const happened = (event: string) => expect.poll(() => events.filter((one) => one === event).length)
const order = () => events.filter((event) => /^(store answers|origin called)/.test(event))

/** A proxy in front of the bridge. Between `hold` and `release`, calls wait. */
let holding: PromiseWithResolvers<void> | undefined
let broken = false
const hold = () => (holding = Promise.withResolvers())
const release = () => {
  holding?.resolve()
  holding = undefined
}
const store = createServer(async (request, response) => {
  const body = await text(request)
  events.push('store called')
  await holding?.promise
  if (broken) return request.socket.destroy()
  const { authorization = '' } = request.headers
  const answer = await fetch(gateway.bridge.url + request.url, {
    method: 'POST',
    headers: { authorization },
    body,
  })
  events.push('store answers')
  response.end(await answer.text())
})
let origin: Awaited<ReturnType<typeof startScriptedOrigin>>
const unfinished: ServerResponse[] = []
beforeAll(async () => {
  await new Promise<void>((resolve) => void store.listen(0, '127.0.0.1', resolve))
  origin = await startScriptedOrigin(({ pathname }, response, { socket }) => {
    events.push(`origin called ${pathname}`)
    response.on('close', () => {
      events.push(response.writableFinished ? 'origin answered' : 'origin aborted')
    })
    const behaviour = pathname.split('/')[2]!
    if (behaviour === 'keep') unfinished.push(response)
    else if (behaviour === 'reset') socket.resetAndDestroy()
    else
      response
        .writeHead(Number(behaviour) || 200, { 'set-cookie': ['a=1', 'b=2'] })
        .end(`the answer to ${pathname}`)
  })
})
afterEach(async () => {
  release()
  broken = false
  await end(unfinished)
  events.length = 0
})
afterAll(async () => {
  store.closeAllConnections()
  store.close()
  await origin?.close()
})

const send = (
  path: string,
  options: FetchOptions = {},
  { fetch } = gateway as Pick<typeof gateway, 'fetch'>,
) =>
  fetch(path, options, {
    ORIGIN: origin.url,
    UPSTASH_REDIS_REST_URL: `http://127.0.0.1:${(store.address() as AddressInfo).port}`,
  })
/** Sends a request. `isThere` is true once the response has arrived. */
function sendAndObserve(...request: Parameters<typeof send>) {
  let settled = false
  const answer = send(...request).finally(() => {
    settled = true
  })
  return { answer, isThere: () => settled }
}

test.each(['GET', 'HEAD', 'OPTIONS'])(
  'A %s request reaches the origin while the store decides, and the response is held back until the decision.',
  async (method) => {
    hold()
    const { answer, isThere } = sendAndObserve('/many/x', { method })
    await happened('store called').toBe(1)
    await happened('origin answered').toBe(1)
    await sleep(50)
    expect([isThere(), events.includes('store answers')]).toEqual([false, false])
    release()
    const { status, headers, body } = await answer
    expect(status).toBe(200)
    expect(headers.get('ratelimit')).toMatch(/^"many";r=\d+;t=\d+$/)
    expect(headers.getSetCookie()).toEqual(['a=1', 'b=2'])
    if (method !== 'HEAD') expect(await new Response(body).text()).toBe('the answer to /many/x')
    expect(events.filter((event) => event.startsWith('origin called'))).toHaveLength(1)
  },
)

test('After the decision, the gateway waits for a slow origin.', async () => {
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
  hold()
  const answer = send('/once/keep')
  await happened('origin called /once/keep').toBe(1)
  release()
  const refused = await answer
  expect(refused.status).toBe(429)
  expect(refused.headers.get('content-type')).toBe('application/problem+json')
  expect(refused.headers.get('ratelimit')).toMatch(/^"once";r=0;t=\d+$/)
  expect(refused.headers.has('set-cookie')).toBe(false)
  await happened('origin aborted').toBe(1)
  events.length = 0
  for (let time = 0; time < 3; time++) expect((await send('/once/x')).status).toBe(429)
  expect(events).toEqual([])
})

test.each([
  ['resets the connection', 'reset', '10s', 502],
  ['is too late', 'keep', '1s', 504],
] as const)(
  'If the origin %s, the client gets the error only if the request is admitted.',
  async (_, behaviour, originTimeout, status) => {
    const hasty = gateway.start({ ...config, originTimeout, namespace: behaviour })
    for (const [turn, expected] of [status, 429].entries()) {
      hold()
      const { answer, isThere } = sendAndObserve(`/two/${behaviour}`, {}, hasty)
      await happened('origin aborted').toBe(turn + 1)
      await sleep(50)
      expect(isThere()).toBe(false)
      release()
      const { status, headers } = await answer
      expect([status, headers.get('ratelimit-policy')]).toEqual([expected, '"two";q=1;w=3600'])
    }
  },
)

test.each<[string, string, FetchOptions]>([
  ['A POST request', '/many/x', { method: 'POST', body: 'a' }],
  ['A POST request without a body', '/many/x', { method: 'POST' }],
  ['A DELETE request', '/many/x', { method: 'DELETE' }],
  ['An OPTIONS request with a body', '/many/x', { method: 'OPTIONS', body: 'a' }],
  ['A request with a policy with check before', '/mixed/before', {}],
  ['A request with a shadow policy', '/mixed/shadow', {}],
])('%s reaches the origin only after the decision.', async (_, path, options) => {
  hold()
  const answer = send(path, options)
  await happened('store called').toBe(1)
  await sleep(50)
  expect(order()).toEqual([])
  release()
  await answer
  expect(order()).toEqual(['store answers', `origin called ${path}`])
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

test('Responses that do not count are refunded, although the origin answers before the store.', async () => {
  const left = async (path: string) => {
    const { headers } = await send(path)
    await gateway.settled()
    return Number(/;r=(\d+)/.exec(headers.get('ratelimit')!)![1])
  }
  hold()
  const early = sendAndObserve('/failures/200')
  await happened('origin answered').toBe(1)
  release()
  await early.answer
  await gateway.settled()
  expect(await left('/failures/404')).toBe(4)
  expect(await left('/failures/200')).toBe(3)
})

test('If the store fails, onStoreError decides, and a denied client gets no response of the origin.', async () => {
  broken = true
  hold()
  const denied = send('/strict/keep')
  await happened('origin called /strict/keep').toBe(1)
  release()
  expect((await denied).status).toBe(503)
  await happened('origin aborted').toBe(1)
  const allowed = await send('/open/x')
  expect([allowed.status, await allowed.text()]).toEqual([200, 'the answer to /open/x'])
})

test('The middleware rejects check parallel, because it has no origin.', () => {
  expect(() => rateLimiter({ policies: [parallel('a')] })).toThrow(
    'policies[0].check: expected before, because only the gateway has an origin to call in parallel, got "parallel"',
  )
})
