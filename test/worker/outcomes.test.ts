/** Charges that depend on the response of the origin (`countOnly`, `cost.response`), with faults between the Worker and Redis. */
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Faults, startFaults } from 'sluice-fault-proxy'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Stack, startStack } from '../../dev/stack.ts'
import { type RunningWorker, startWorker } from '../../dev/worker.ts'
import type { AlgorithmName, PolicyOptions } from '../../src/config/options.ts'
import { algorithms } from '../../src/store/algorithms/index.ts'
import { type Script, startScriptedOrigin } from '../support/scripted-origin.ts'

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
  deadline: '10s' as const,
  originTimeout: '5s' as const,
  policies: [
    policy('login', { limit: 5, countOnly: [401, 403] }),
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
let originRequests = 0
const script: Script = ({ searchParams: query }, response, { socket, headers }) => {
  originRequests += 1
  if (query.has('reset')) return socket.resetAndDestroy()
  if (query.has('never')) return
  const price = query.get('price')
  if (price !== null) response.setHeader('X-Price', price)
  response.statusCode = Number(query.get('status') ?? 200)
  const shadow = String(headers['sluice-shadow'] ?? '')
  if (query.has('hold')) held.push(response)
  else setTimeout(() => response.end(shadow), Number(query.get('ms') ?? 0))
}

let stack: Stack
let origin: Awaited<ReturnType<typeof startScriptedOrigin>>
let faults: Faults
let worker: RunningWorker
beforeAll(async () => {
  origin = await startScriptedOrigin(script)
  stack = await startStack()
  faults = await startFaults({ target: stack.bridge.url })
  worker = await startWorker(
    fileURLToPath(new URL('../../.cache/workers/any-config', import.meta.url)),
    {
      env: {
        UPSTASH_REDIS_REST_URL: faults.url,
        UPSTASH_REDIS_REST_TOKEN: stack.bridge.token,
        ORIGIN: origin.url,
        CONFIG: JSON.stringify(config),
      },
    },
  )
})
afterAll(async () => {
  await worker?.stop()
  await faults?.close()
  await Promise.all([stack?.stop(), origin?.close()])
})

async function get(path: string, init: RequestInit = {}) {
  const response = await fetch(worker.directUrl + path, {
    ...init,
    headers: { 'cf-connecting-ip': '203.0.113.7' },
  })
  return { status: response.status, headers: response.headers, body: await response.text() }
}
const statuses = async (path: string, times: number) => {
  const found: number[] = []
  for (let time = 0; time < times; time++) found.push((await get(path)).status)
  return found
}
const left = async (name: string) =>
  Number(/;r=(\d+)/.exec((await get(`/${name}/left`)).headers.get('ratelimit')!)![1])
const leftOf = (name: string) => expect.poll(() => left(name), { timeout: 10_000 })
const expectLeft = async (name: string, count: number) => {
  await leftOf(name).toBe(count)
  await sleep(100) // the number does not change any more
  expect(await left(name)).toBe(count)
}

test('Of 100 concurrent failed logins with a limit of 5, only 5 reach a slow origin.', async () => {
  const before = originRequests
  const answers = await Promise.all(
    Array.from({ length: 100 }, () => get('/login/?status=401&ms=1000')),
  )
  const count = (status: number) => answers.filter((answer) => answer.status === status).length
  expect([count(401), count(429), originRequests - before]).toEqual([5, 95, 5])
  // Now even the correct password is refused.
  expect(await statuses('/login/?status=200', 2)).toEqual([429, 429])
})

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
  await expectLeft(name, counts ? before - 1 : before)
})

test('A response that counts causes no second call to Redis, and one that does not count causes one.', async () => {
  for (const [status, calls] of [
    [404, 1],
    [200, 2],
  ] as const) {
    const before = stack.httpRequests()
    for (let time = 1; time <= 5; time++) {
      await get(`/client/?status=${status}`)
      await expect.poll(() => stack.httpRequests() - before).toBe(time * calls)
    }
    await sleep(500) // there are no more calls
    expect(stack.httpRequests() - before).toBe(5 * calls)
  }
})

test.each(names)(
  'The algorithm %s refunds only responses that do not count.',
  async (algorithm) => {
    expect(await statuses(`/${algorithm}/?status=200`, 5)).toEqual(Array(5).fill(200))
    await expectLeft(algorithm, 100)
    await statuses(`/${algorithm}/?status=401`, 3)
    await expectLeft(algorithm, 97)
  },
)

test('A refused request gets no refund and causes no second call.', async () => {
  expect(await statuses('/refused/?status=404', 2)).toEqual([404, 404])
  await sleep(200)
  const before = stack.httpRequests()
  expect(await statuses('/refused/?status=200', 3)).toEqual([429, 429, 429])
  await sleep(200)
  expect(stack.httpRequests() - before).toBe(3)
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
    await expectLeft(name, before - cost)
  },
)

test('A shadow policy refunds responses that do not count.', async () => {
  for (let time = 0; time < 4; time++) {
    const before = stack.httpRequests()
    expect((await get('/trial/?status=200')).body).toBe('')
    await expect.poll(() => stack.httpRequests() - before).toBe(2) // the decision and the refund
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
    const [errors, client, price] = await Promise.all(['errors', 'client', 'price'].map(left))
    const paths = ['errors', 'client', 'price'].map((name) => `/${name}/?${failure}`)
    const answers = await Promise.all(paths.map((path) => get(path)))
    expect(answers.map((answer) => answer.status)).toEqual([status, status, status])
    await expectLeft('errors', errors! - 1)
    await expectLeft('client', client!)
    await expectLeft('price', price! - 10) // the response has no price
  },
)

test.each([
  ['200', 0],
  ['404', 1],
])('If the client hangs up, a %s of the origin is still charged %d.', async (status, cost) => {
  const before = await left('client')
  const client = new AbortController()
  const response = get(`/client/?hold&status=${status}`, { signal: client.signal }).catch(
    () => 'aborted',
  )
  await expect.poll(() => held.length, { timeout: 10_000 }).toBe(1)
  expect(await left('client')).toBe(before - 1)
  client.abort()
  expect(await response).toBe('aborted')
  await sleep(200)
  held.pop()!.end()
  await expectLeft('client', before - cost)
})

test('A refund is made even if Redis answers after the deadline of a decision.', async () => {
  const before = await left('away')
  const pending = get('/away/?hold')
  await expect.poll(() => held.length, { timeout: 10_000 }).toBe(1)
  await faults.set('delay=1000', { next: 1 })
  held.pop()!.end()
  expect((await pending).status).toBe(200)
  await leftOf('away').toBe(before)
  // The Worker waits for the reply, because an aborted call may not arrive.
  expect(worker.logs.filter((line) => line.includes('store-error'))).toEqual([])
})

test('If Redis fails after the decision, the client gets no 5xx, the charge remains, and the error is logged.', async () => {
  const before = await left('away')
  const pending = get('/away/?hold')
  await expect.poll(() => held.length, { timeout: 10_000 }).toBe(1)
  await faults.set('reset')
  held.pop()!.end()
  expect((await pending).status).toBe(200)
  const lines = () => worker.logs.map((line) => JSON.parse(line))
  await expect
    .poll(lines, { timeout: 10_000 })
    .toContainEqual(expect.objectContaining({ event: 'store-error', code: 'unreachable' }))
  await faults.set(null)
  await expectLeft('away', before - 1)
})
