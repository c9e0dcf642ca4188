import { expect, test as serial } from 'vitest'
import type { ConfigOptions, PolicyOptions } from '../../../../src/core/config/options.ts'
import { endpoints } from '../../../../src/features/endpoints/index.ts'
import { type TurnsOptions, turns } from '../../../../src/features/turns/index.ts'
import { createSluice } from '../../../../src/hosts/app/sluice.ts'
import { durableObjects } from '../../../../src/stores/durable-objects/index.ts'
import { useDatabase } from '../../../support/database.ts'
import { bans, slidingLog } from '../../../support/features.ts'
import { memoryObjects } from '../../../support/memory-objects.ts'

// Most tests wait, so they run at the same time. Each has a namespace, and asks less of time than it takes.
const test = serial.concurrent

const { env } = useDatabase()
const spaced = {
  name: 'spaced',
  algorithm: 'gcra',
  limit: 10,
  window: '1s',
  key: 'global',
} as const

let namespaces = 0

/** Isolates with one database, and functions that check a request. */
function isolates(
  count: number,
  policies: PolicyOptions<Request>[],
  { maxWaiting, ...change }: Partial<ConfigOptions<Request>> & TurnsOptions = {},
  variables: object = env,
) {
  const namespace = `turns-${++namespaces}`
  return Array.from({ length: count }, () => {
    const sluice = createSluice<Request>({
      namespace,
      deadline: '5s',
      ...change,
      policies,
      use: [
        turns(maxWaiting === undefined ? {} : { maxWaiting }),
        slidingLog(),
        bans(),
        ...(change.use ?? []),
      ],
    })
    return async (request = new Request('http://localhost/'), closed?: Promise<void>) => {
      const { headers, ...checked } = await sluice.check(request, { env: variables, closed })
      const [, waited] = /dur=(\d+)/.exec(headers.get('server-timing') ?? 'dur=0')!
      return { ...checked, headers, at: Date.now(), waitedMs: Number(waited) }
    }
  })
}

const inObjects = () =>
  [
    { store: durableObjects() },
    { SLUICE_SUBJECT: memoryObjects().objects, SLUICE_SECRET: 'a secret for tests' },
  ] as [object, object]

const places: [string, object?, object?][] = [['Redis'], ['a Durable Object', ...inObjects()]]

for (const [name, ...where] of places) {
  test(`Requests of several isolates wait for their turn, in the order of arrival (${name}).`, async () => {
    const checks = isolates(2, [{ ...spaced, wait: '5s' }], ...where)
    const begun = Date.now()
    const results = await Promise.all([0, 1, 2, 3, 4].map((index) => checks[index % 2]!()))
    results.sort((one, other) => one.at - other.at)
    results.forEach(({ allowed, at }, index) => {
      expect(allowed).toBe(true)
      expect(at - begun).toBeGreaterThanOrEqual(index * 100)
    })
    const waited = results.map(({ headers }) => headers.get('server-timing'))
    expect(waited[0]).toBe(null)
    expect(waited[4]).toMatch(/^sluice;desc="waited";dur=\d+$/)
  })

  test(`A request whose turn is too late is refused at once with the exact time, and charges nothing (${name}).`, async () => {
    const [check] = isolates(1, [{ ...spaced, limit: 1, window: '1h', wait: '500ms' }], ...where)
    const begun = Date.now()
    await check!()
    const { decision, response } = await check!()
    expect(decision).toMatchObject({ allowed: false, reason: 'limited' })
    expect(decision.retryAfterMs).toBeGreaterThanOrEqual(3_600_000 - (Date.now() - begun))
    expect(decision.retryAfterMs).toBeLessThanOrEqual(3_600_000)
    expect(response!.status).toBe(429)
    const seconds = Math.ceil(decision.retryAfterMs! / 1000)
    expect(response!.headers.get('retry-after')).toBe(`${seconds}`)
  })

  test(`A client that goes away does not go on, and its place is free (${name}).`, async () => {
    const [check] = isolates(1, [{ ...spaced, limit: 1, window: '3s', wait: '30s' }], ...where)
    await check!()
    const leaving = new AbortController()
    const { signal } = leaving
    const first = check!(new Request('http://localhost/', { signal }))
    let close = () => {}
    const closed = new Promise<void>((resolve) => {
      close = resolve
    })
    const second = check!(undefined, closed)
    await new Promise((resolve) => setTimeout(resolve, 50))
    leaving.abort()
    close()
    expect([(await first).allowed, (await second).allowed]).toEqual([false, false])
    expect((await check!(new Request('http://localhost/', { signal }))).allowed).toBe(false)
    await new Promise((resolve) => setTimeout(resolve, 100))
    const { allowed, waitedMs } = await check!()
    expect(allowed).toBe(true)
    // Behind the two it would wait for nine seconds.
    expect(waitedMs).toBeLessThan(6_000)
  })
}

test('The fields of a request that has waited are those of the time at which it goes on.', async () => {
  const [check] = isolates(1, [
    { ...spaced, algorithm: 'fixed-window', limit: 1, wait: '5s', window: '1s' },
  ])
  await check!()
  const { decision, headers } = await check!()
  const [state] = decision.limits
  expect(state!.resetAfterMs).toBeLessThanOrEqual(1_000)
  expect(state!.resetAfterMs).toBeGreaterThan(800)
  expect(headers.get('ratelimit')).toBe('"spaced";r=0;t=1')
  expect(decision).not.toHaveProperty('limits.0.waitMs')
})

test('A policy without a wait refuses at once, and the request takes no place.', async () => {
  const strict = { ...spaced, name: 'strict', limit: 1, window: '5s' } as const
  const [check] = isolates(1, [{ ...strict, name: 'spaced', wait: '60s' }, strict])
  await check!()
  const { allowed, decision, headers } = await check!()
  expect([allowed, headers.get('server-timing')]).toEqual([false, null])
  expect(decision.limits.map((limit) => limit.allowed)).toEqual([false, false])
})

test('A shadow policy with a wait holds nothing.', async () => {
  const [check] = isolates(1, [{ ...spaced, limit: 1, wait: '5s', mode: 'shadow' }])
  for (const _ of [1, 2, 3]) expect(await check!()).toMatchObject({ allowed: true, waitedMs: 0 })
})

test('Refusals of a policy with a wait count towards its ban.', async () => {
  const penalty = { after: 2, within: '1m', ban: '1m' } as const
  const [check] = isolates(1, [{ ...spaced, limit: 1, wait: '1ms', penalty }])
  const reasons = []
  for (const _ of [1, 2, 3, 4]) reasons.push((await check!()).decision.reason)
  expect(reasons).toEqual(['within-limit', 'limited', 'banned', 'banned'])
})

test('A cached refusal ends when a request may wait again.', async () => {
  const [check] = isolates(1, [
    { ...spaced, algorithm: 'fixed-window', limit: 1, window: '2s', wait: '1s' },
  ])
  await check!()
  const begun = Date.now()
  expect((await check!()).allowed).toBe(false)
  let checked = await check!()
  while (!checked.allowed) {
    await new Promise((resolve) => setTimeout(resolve, 20))
    checked = await check!()
  }
  // It may wait from one second on, and would not have to after two.
  expect(checked.waitedMs).toBeGreaterThan(0)
  expect(Date.now() - begun).toBeGreaterThan(1_500)
})

test('At most maxWaiting requests of an isolate wait or ask, and the others have no place.', async () => {
  const [check] = isolates(1, [{ ...spaced, wait: '5s' }], { maxWaiting: 2 })
  const results = await Promise.all([1, 2, 3, 4, 5, 6].map(() => check!()))
  expect(results.filter(({ allowed }) => allowed)).toHaveLength(2)
  const refused = results.filter(({ allowed }) => !allowed)
  for (const { decision } of refused) expect(decision.retryAfterMs).toBeGreaterThan(0)
  // Those that were refused have left no units behind, and the next place is not before theirs.
  expect((await check!()).waitedMs).toBeLessThan(510)
})

test('A call of the decision API waits as long as it says, 500 ms by default, and forward-auth 500 ms.', async () => {
  const api = { ...env, SLUICE_API_TOKEN: 'a-token-of-the-decision-api' }
  const slow = { ...spaced, limit: 2, window: '20s', wait: '30s' } as const
  const headers = { Authorization: `Bearer ${api.SLUICE_API_TOKEN}` }
  const ask = (more: object = {}) =>
    new Request('http://localhost/_sluice/v1/decide', {
      method: 'POST',
      headers,
      body: JSON.stringify({ request: { url: 'http://localhost/' }, ...more }),
    })
  const forwarded = { 'x-forwarded-method': 'GET', 'x-forwarded-uri': '/', 'x-forwarded-host': 'a' }
  const auth = () =>
    new Request('http://localhost/_sluice/v1/auth', {
      headers: { 'sluice-token': api.SLUICE_API_TOKEN, ...forwarded },
    })
  const [check] = isolates(1, [slow], { use: [endpoints()] }, api)
  expect((await check!(ask())).response!.status).toBe(200)
  for (const request of [ask(), auth()]) {
    const begun = Date.now()
    expect((await check!(request)).response!.status).toBe(429) // its turn is after ten seconds
    expect(Date.now() - begun).toBeLessThan(5_000)
  }
  const [other] = isolates(1, [{ ...slow, window: '2s' }], { use: [endpoints()] }, api)
  const begun = Date.now()
  expect((await other!(ask())).response!.status).toBe(200)
  expect((await other!(ask({ waitMs: 5_000 }))).response!.status).toBe(200)
  expect(Date.now() - begun).toBeGreaterThanOrEqual(1_000)
})

test.each([
  [
    { algorithm: 'concurrency' },
    'policies[0].wait: expected no value (a slot is free when another',
  ],
  [
    { algorithm: 'sliding-window', distinct: 'header:x-a' },
    'policies[0].wait: expected no value (the time at which a value',
  ],
  [{ wait: '2m' }, 'policies[0].wait: expected a duration of at most 60s'],
] as const)(
  'A setting that does not work with a wait is an error that says why: %j',
  (change, why) => {
    const policy = { ...spaced, algorithm: 'fixed-window', wait: '2s', ...change } as never
    expect(() => isolates(1, [policy])).toThrow(why)
  },
)

test('Options that turns() does not have are errors.', () => {
  expect(() => turns({ maxWaiting: 0 })).toThrow('maxWaiting: expected a whole number from 1')
})
