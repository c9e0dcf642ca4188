/** Charges that depend on the response of the origin (`countOnly`, `cost.response`), with faults between the gateway and Redis. */

import type { ServerResponse } from 'node:http'
import { Hono } from 'hono'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { AlgorithmName, PolicyOptions } from '../../../src/core/config/options.ts'
import { algorithms } from '../../../src/core/connection/algorithms/index.ts'
import { rateLimiter } from '../../../src/hosts/app/middleware.ts'
import { type Faults, startFaults } from '../../support/fault-proxy/index.ts'
import { concurrency } from '../../support/features.ts'
import { type Isolate, useGateway } from '../../support/gateway.ts'
import { type Script, startScriptedOrigin } from '../../support/scripted-origin.ts'

/** Each policy applies to /<name>/…. `/<name>/left` costs 0, so it shows the remaining units without a charge. */
const policy = (name: string, options: Partial<PolicyOptions> = {}): PolicyOptions => {
  const { cost = {}, ...rest } = options
  const { response, otherwise = 1 } = cost as { response?: string; otherwise?: number }
  return {
    name,
    algorithm: 'fixed-window',
    limit: 100,
    window: '1d',
    match: { path: `/${name}/*` },
    cost: {
      ...(response && { response }),
      rules: [{ path: `/${name}/left`, cost: 0 }],
      otherwise,
    },
    ...rest,
  }
}
const names = Object.keys(algorithms) as AlgorithmName[]
const config = {
  policies: [
    policy('client', { countOnly: '4xx' }),
    policy('success', { countOnly: '200-299' }),
    ...names.map((algorithm) => policy(algorithm, { algorithm, countOnly: 401 })),
    policy('refused', { limit: 2, countOnly: '4xx' }),
    policy('price', { limit: 1000, cost: { response: 'X-Price', otherwise: 10 } }),
    policy('both', { cost: { response: 'X-Price', otherwise: 10 }, countOnly: 200 }),
    policy('trial', { mode: 'shadow', limit: 2, countOnly: 401 }),
    policy('beside', { match: { path: '/trial/*' } }),
    policy('errors', { countOnly: '5xx' }),
    policy('away', { countOnly: 401 }),
  ],
}

/** Responses that the origin has not finished: `?hold`. */
const held: ServerResponse[] = []
const script: Script = ({ searchParams: query }, response, { socket, headers }) => {
  if (query.has('reset')) return socket.resetAndDestroy()
  if (query.has('never')) return
  const price = query.get('price')
  if (price !== null) response.setHeader('X-Price', price)
  response.statusCode = Number(query.get('status') ?? 200)
  const shadow = String(headers['sluice-shadow'] ?? '')
  if (query.has('hold')) held.push(response)
  else setTimeout(() => response.end(shadow), Number(query.get('ms') ?? 0))
}

const gateway = useGateway({ config })
let origin: Awaited<ReturnType<typeof startScriptedOrigin>>
let faults: Faults
beforeAll(async () => {
  origin = await startScriptedOrigin(script)
  faults = await startFaults({ target: gateway.bridge.url })
})
afterAll(async () => {
  await faults?.close()
  await origin?.close()
})

async function get(path: string, { fetch } = gateway as Isolate) {
  const env = { ORIGIN: origin.url, UPSTASH_REDIS_REST_URL: faults.url }
  const response = await fetch(path, {}, env)
  return { status: response.status, headers: response.headers, body: await response.text() }
}
const statuses = async (path: string, times: number) => {
  const found: number[] = []
  for (let time = 0; time < times; time++) found.push((await get(path)).status)
  return found
}
/** The units that remain when everything is settled. */
const left = async (name: string) => {
  await gateway.settled()
  return Number(/;r=(\d+)/.exec((await get(`/${name}/left`)).headers.get('ratelimit')!)![1])
}
/** The calls of the bridge that `run` causes, until everything is settled. */
async function callsOf(run: () => Promise<unknown>): Promise<number> {
  const before = gateway.httpRequests()
  await run()
  await gateway.settled()
  return gateway.httpRequests() - before
}

test.each<[string, number, boolean]>([
  ['client', 200, false],
  ['client', 399, false],
  ['client', 400, true],
  ['client', 499, true],
  ['client', 500, false],
  ['success', 200, true],
  ['success', 299, true],
  ['success', 302, false],
  ['success', 404, false],
])('Under the policy "%s" a response with status %d counts: %s.', async (name, status, counts) => {
  const before = await left(name)
  const { headers } = await get(`/${name}/?status=${status}`)
  expect(headers.get('ratelimit')).toMatch(`r=${before - 1};`) // charged before the response
  expect(await left(name)).toBe(counts ? before - 1 : before)
})

test('A response that counts causes no second call to Redis, and one that does not count causes one.', async () => {
  for (const [status, calls] of [
    [404, 1],
    [200, 2],
  ]) {
    for (let time = 1; time <= 3; time++) {
      expect(await callsOf(() => get(`/client/?status=${status}`))).toBe(calls)
    }
  }
})

test.each(names)(
  'The algorithm %s refunds only responses that do not count.',
  async (algorithm) => {
    expect(await statuses(`/${algorithm}/?status=200`, 5)).toEqual(Array(5).fill(200))
    expect(await left(algorithm)).toBe(100)
    await statuses(`/${algorithm}/?status=401`, 3)
    expect(await left(algorithm)).toBe(97)
  },
)

test('A refused request gets no refund and causes no second call.', async () => {
  expect(await statuses('/refused/?status=404', 2)).toEqual([404, 404])
  expect(
    await callsOf(async () =>
      expect(await statuses('/refused/?status=200', 3)).toEqual([429, 429, 429]),
    ),
  ).toBe(3)
  expect(await left('refused')).toBe(0)
})

test.each<[string, string, number]>([
  ['price', '?price=7', 7],
  ['price', '?price=0', 0],
  ['price', '?price=10', 10],
  ['price', '?price=11', 10],
  ['price', '?price=99999999999999999999', 10],
  ['price', '', 10],
  ['price', '?price=', 10],
  ['price', '?price=-3', 10],
  ['price', '?price=1.5', 10],
  ['price', '?price=1,2', 10],
  ['price', '?price=many', 10],
  ['price', '?price=7&status=500', 7],
  ['both', '?price=7', 7],
  ['both', '?price=7&status=404', 0],
])(
  'Under the policy "%s" a request with the query "%s" is charged 10 units first and %d in the end.',
  async (name, query, cost) => {
    const before = await left(name)
    expect((await get(`/${name}/${query}`)).headers.get('ratelimit')).toMatch(`r=${before - 10};`)
    expect(await left(name)).toBe(before - cost)
  },
)

test('A shadow policy refunds responses that do not count.', async () => {
  for (let time = 0; time < 4; time++) {
    // the decision and the refund
    expect(await callsOf(async () => expect((await get('/trial/?status=200')).body).toBe(''))).toBe(
      2,
    )
  }
  await statuses('/trial/?status=401', 2)
  expect((await get('/trial/?status=200')).body).toBe('"trial"')
  expect(await left('trial')).toBe(100 - 8) // including this request
})

test.each([
  ['reset', 502],
  ['never', 504],
])(
  'A failure of the origin (%s) becomes a %d, which counts like a response of the origin.',
  async (failure, status) => {
    const hasty = gateway.start({ ...config, originTimeout: '500ms' })
    for (const [name, cost] of [
      ['errors', 1],
      ['client', 0],
      ['price', 10], // the response has no price
    ] as const) {
      const before = await left(name)
      expect((await get(`/${name}/?${failure}`, hasty)).status).toBe(status)
      await hasty.settled()
      expect([name, await left(name)]).toEqual([name, before - cost])
    }
  },
)

test('A refund is made even if Redis answers after the deadline of a decision.', async () => {
  const before = await left('away')
  const pending = get('/away/?hold')
  await expect.poll(() => held.length).toBe(1)
  await faults.set('delay=1000', { next: 1 })
  held.pop()!.end()
  expect((await pending).status).toBe(200)
  expect(await left('away')).toBe(before)
  // The gateway waits for the reply, because an aborted call may not arrive.
  expect(gateway.events()).not.toContain('store-error')
})

test('If Redis fails after the decision, the client gets no 5xx, the charge remains, and the error is logged.', async () => {
  const before = await left('away')
  const pending = get('/away/?hold')
  await expect.poll(() => held.length).toBe(1)
  await faults.set('reset')
  held.pop()!.end()
  expect((await pending).status).toBe(200)
  await gateway.settled()
  expect(gateway.logs.map((line) => JSON.parse(line))).toContainEqual(
    expect.objectContaining({ event: 'store-error', code: 'unreachable' }),
  )
  await faults.set(null)
  expect(await left('away')).toBe(before - 1)
})

test('A Hono handler that throws a value other than an Error, or answers HEAD, releases its slot.', async () => {
  const app = new Hono()
  const slots = policy('slots', { algorithm: 'concurrency', limit: 3, window: '1h' })
  const use = [concurrency()]
  app.use(rateLimiter({ clientAddress: 'cloudflare', deadline: '10s', policies: [slots], use }))
  app.get('/slots/throws', () => Promise.reject('a text'))
  app.get('*', (c) => c.text('ok'))
  const ask = (path: string, method = 'GET') => {
    const headers = { 'cf-connecting-ip': '203.0.113.7' }
    return app.request(path, { method, headers }, gateway.env)
  }
  const freeSlots = async () => (await ask('/slots/left')).headers.get('ratelimit')?.split(';')[1]
  await expect(ask('/slots/throws')).rejects.toBe('a text')
  await expect.poll(freeSlots).toBe('r=3')
  expect((await ask('/slots/any', 'HEAD')).status).toBe(200) // its body is never read
  await expect.poll(freeSlots).toBe('r=3')
})
