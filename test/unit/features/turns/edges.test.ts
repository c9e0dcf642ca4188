import { expect, test } from 'vitest'
import type { ConfigOptions, PolicyOptions } from '../../../../src/core/config/options.ts'
import { endpoints } from '../../../../src/features/endpoints/index.ts'
import { turns } from '../../../../src/features/turns/index.ts'
import { createSluice } from '../../../../src/hosts/app/sluice.ts'
import { durableObjects } from '../../../../src/stores/durable-objects/index.ts'
import { useDatabase } from '../../../support/database.ts'
import { concurrency, slidingLog } from '../../../support/features.ts'
import { memoryObjects } from '../../../support/memory-objects.ts'

const { env } = useDatabase()
const spaced = {
  name: 'spaced',
  algorithm: 'gcra',
  limit: 10,
  window: '1s',
  key: 'global',
} as const
const later = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Resolves with a result that is a refusal, and not with another one. */
const refusalOf = async <T extends { allowed: boolean }>(result: Promise<T>): Promise<T> =>
  (await result).allowed ? new Promise<T>(() => {}) : result

let namespaces = 0

function limiter(
  policies: PolicyOptions<Request>[],
  {
    maxWaiting = 1_000,
    use = [],
    ...change
  }: Partial<ConfigOptions<Request>> & { maxWaiting?: number } = {},
  variables: object = env,
) {
  const sluice = createSluice<Request>({
    namespace: `turns-edges-${++namespaces}`,
    deadline: '5s',
    ...change,
    policies,
    use: [turns({ maxWaiting }), slidingLog(), ...use],
  })
  return (request = new Request('http://localhost/'), closed?: Promise<void>) =>
    sluice.check(request, { env: variables, closed })
}

const inObjects = () =>
  [
    { store: durableObjects() },
    { SLUICE_SUBJECT: memoryObjects().objects, SLUICE_SECRET: 'a secret for tests' },
  ] as [object, object]

test('A request that finds no room to wait is told the time of its place, and not that of a shadow policy.', async () => {
  const shadow = { name: 'shadow', limit: 1, window: '1h', key: 'global', mode: 'shadow' } as const
  const check = limiter([{ ...spaced, wait: '5s' }, shadow], { maxWaiting: 1 })
  const results = await Promise.all([1, 2, 3, 4].map(() => check()))
  const refused = results.filter(({ allowed }) => !allowed)
  expect(refused.length).toBeGreaterThan(0)
  for (const { decision } of refused) expect(decision.retryAfterMs).toBeLessThanOrEqual(400)
})

test('Without room to wait a Durable Object still counts slots, which have no wait.', async () => {
  const [store, variables] = inObjects()
  const slots = {
    name: 'slots',
    algorithm: 'concurrency',
    limit: 9,
    window: '1m',
    key: 'global',
  } as const
  const options = { ...store, maxWaiting: 1, use: [concurrency()] }
  const slow = { ...spaced, limit: 1, window: '10s', wait: '60s' } as const
  const check = limiter([slow, slots], options, variables)
  // The others wait for ten seconds, unless the room is full.
  const first = await Promise.race([1, 2, 3].map(() => refusalOf(check())))
  expect(first.decision).toMatchObject({ allowed: false, reason: 'limited' })
  expect(first.decision).not.toHaveProperty('fallback')
})

test('A refusal tells when units come back, and not when a request may wait again.', async () => {
  const check = limiter([{ ...spaced, limit: 1, window: '10s', wait: '2s' }])
  await check()
  const { response } = await check()
  expect(response!.headers.get('retry-after')).toBe('10')
  expect(response!.headers.get('ratelimit')).toBe('"spaced";r=0;t=10')
})

const api = () => ({ ...env, SLUICE_API_TOKEN: 'a-token-of-the-decision-api' })
const ask = (token: string, key?: string, signal?: AbortSignal) =>
  new Request('http://localhost/_sluice/v1/decide', {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, ...(key && { 'Idempotency-Key': key }) },
    body: JSON.stringify({ request: { url: 'http://localhost/' }, waitMs: 30_000 }),
    ...(signal && { signal }),
  })

test('A repeated call with an idempotency key waits only for the rest, with the units of the first call, whose client had gone.', async () => {
  const variables = api()
  // A turn each 1.5 s.
  const policy = { ...spaced, limit: 2, window: '3s', wait: '9s' } as const
  const check = limiter([policy], { use: [endpoints()] }, variables)
  const token = variables.SLUICE_API_TOKEN
  const begun = Date.now()
  await check(ask(token))
  const leaving = new AbortController()
  const first = check(ask(token, 'one', leaving.signal))
  await later(100)
  leaving.abort()
  expect((await first).response!.status).toBe(429)
  await later(900)
  expect((await check(ask(token, 'one'))).response!.status).toBe(200)
  expect(Date.now() - begun).toBeGreaterThanOrEqual(1_490)
  expect(Date.now() - begun).toBeLessThan(2_300) // the whole wait would end after 2.5 s
  await check()
  expect(Date.now() - begun).toBeGreaterThanOrEqual(2_990)
})

test('A call of the decision API gives its place up when its connection closes.', async () => {
  const variables = api()
  const policy = { ...spaced, limit: 1, window: '20s', wait: '30s' } as const
  const check = limiter([policy], { use: [endpoints()] }, variables)
  await check()
  const begun = Date.now()
  const answer = await check(
    ask(variables.SLUICE_API_TOKEN),
    later(100).then(() => {}),
  )
  expect(answer.response!.status).toBe(429)
  expect(Date.now() - begun).toBeLessThan(10_000) // its place is after 20 s
})

test('Also where each subject has an object of its own, the shortest wait counts.', async () => {
  const check = limiter(
    [
      { ...spaced, limit: 1, window: '20s', wait: '30s' },
      { ...spaced, name: 'other', key: 'header:x', limit: 100, wait: '100ms' },
    ],
    ...inObjects(),
  )
  const get = () => check(new Request('http://localhost/', { headers: { x: '1' } }))
  await get()
  const begun = Date.now()
  const { allowed, decision } = await get()
  expect([allowed, Date.now() - begun < 10_000]).toEqual([false, true])
  expect(decision.retryAfterMs).toBeGreaterThan(10_000)
})

test('A log keeps its bound if another object refuses a request that has a place.', async () => {
  const strict = { name: 'strict', limit: 1, window: '1h', key: 'header:x' } as const
  const check = limiter(
    [{ ...spaced, algorithm: 'sliding-log', limit: 1, wait: '5s' }, strict],
    ...inObjects(),
  )
  const get = (x: string) => check(new Request('http://localhost/', { headers: { x } }))
  const begun = Date.now()
  expect((await get('1')).allowed).toBe(true)
  expect((await get('1')).allowed).toBe(false)
  await later(50) // the refusal is refunded in the background
  expect((await get('2')).allowed).toBe(true)
  expect(Date.now() - begun).toBeGreaterThanOrEqual(990)
})
