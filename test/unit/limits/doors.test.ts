/** The doors to one configuration: requests, calls by name and key, and the decision API. */
import * as fc from 'fast-check'
import { Hono } from 'hono'
import { describe, expect, test, vi } from 'vitest'
import type { Decision } from '../../../src/core/base/decision.ts'
import type { ConfigOptions } from '../../../src/core/config/options.ts'
import type { DecisionEvent } from '../../../src/features/observe/event.ts'
import { observe } from '../../../src/features/observe/index.ts'
import { rateLimiter } from '../../../src/hosts/app/middleware.ts'
import { createSluice } from '../../../src/hosts/app/sluice.ts'
import { createGateway } from '../../../src/hosts/worker/gateway.ts'
import type { KeyValues, LimitDecision } from '../../../src/limits/door.ts'
import { useDatabase } from '../../support/database.ts'
import { property } from '../../support/law.ts'
import { configOf, servers } from '../../support/node-servers.ts'

const { env } = useDatabase()

let namespaces = 0

/** The doors to one configuration with counters of its own. Each asks one policy. */
function doorsTo(policies: ConfigOptions['policies']) {
  namespaces += 1
  const config: ConfigOptions = {
    ...{ namespace: `doors-${namespaces}`, clientAddress: 'socket', deadline: '5s', policies },
  }
  const sluice = createSluice(config)
  const gateway = createGateway({ ...config, accept: 'no-origin' })
  const worker = { ...env, SLUICE_API_TOKEN: 'a-token-of-the-decision-api-for-tests' }
  const context = { waitUntil() {}, passThroughOnException() {}, props: {} }
  async function ask(path: string, body: object): Promise<Decision> {
    const request = new Request(`https://limits.example.com/_sluice/v1/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${worker.SLUICE_API_TOKEN}` },
      body: JSON.stringify(body),
    })
    return (await gateway.fetch(request, worker, context)).json() as Promise<Decision>
  }
  const ofSluice = async (mode: 'limit' | 'peek', policy: string, key: KeyValues, cost: number) =>
    JSON.parse(JSON.stringify(await sluice[mode](policy, key, { cost, env }))) as Decision
  return {
    sluice,
    limit: (policy: string, key: KeyValues, cost: number) => ofSluice('limit', policy, key, cost),
    ask,
    decide: (policy: string, key: KeyValues, cost: number) => ask('decide', { policy, key, cost }),
    peek: (policy: string, key: KeyValues) => ofSluice('peek', policy, key, 1),
    async request(headers: Record<string, string>) {
      const request = new Request('http://localhost/', { headers })
      return (await sluice.check(request, { env })).decision
    },
  }
}

property(
  'A call by name and key, the decision API and a request with that key count in one quota.',
  fc.array(
    fc.record({
      door: fc.constantFrom('limit', 'decide', 'request'),
      user: fc.constantFrom('ann', 'Ann', 'ben'),
      org: fc.constantFrom('one', 'two'),
      cost: fc.integer({ min: 1, max: 3 }),
    }),
    { maxLength: 12 },
  ),
  async (calls) => {
    const limit = 8
    const key: ['header:x-user', 'header:x-org'] = ['header:x-user', 'header:x-org']
    const terms = { algorithm: 'fixed-window', limit, window: '1h', key } as const
    const doors = doorsTo([{ name: 'pairs', ...terms }])
    const used = new Map<string, number>()
    for (const { door, user, org, cost: given } of calls) {
      const cost = door === 'request' ? 1 : given
      const decision =
        door === 'request'
          ? await doors.request({ 'x-user': user, 'x-org': org })
          : await doors[door]('pairs', [user, org], cost)
      const quota = `${user.toLowerCase()} ${org}` // values that clients write are folded
      const before = used.get(quota) ?? 0
      const fits = before + cost <= limit
      const after = fits ? before + cost : before
      used.set(quota, after)
      expect(decision).toMatchObject({
        allowed: fits,
        limits: [{ cost, remaining: limit - after }],
      })
    }
  },
  12,
)

test('A call by name and key has the decision of the decision API, but for the time.', async () => {
  const terms = { limit: 5, window: '1h', algorithm: 'fixed-window', align: 'clock' } as const
  const [one, other] = [1, 2].map(() =>
    doorsTo([{ name: 'login', key: 'header:x-user', ...terms }]),
  )
  const timeless = (text: string, time: unknown) => (/Ms$|^decidedAt$/.test(text) ? 0 : time)
  for (const cost of [1, 2, 3, 1, 9]) {
    const {
      limit: _,
      remaining,
      resetAfterMs,
      ...limited
    } = (await one!.limit('login', 'ann', cost)) as Decision & Record<string, unknown>
    const decided = await other!.decide('login', 'ann', cost)
    expect(JSON.stringify(limited, timeless)).toBe(JSON.stringify(decided, timeless))
    expect([remaining, typeof resetAfterMs]).toEqual([decided.limits[0]!.remaining, 'number'])
  }
})

test('A policy by name has the errors of its key and its plan.', async () => {
  const { sluice } = doorsTo([
    { name: 'by-ip', key: 'ip', limit: 2, window: '1h' },
    { name: 'by-user', key: 'header:x-user', limit: 2, window: '1h' },
  ])
  const call = (name: string, key: KeyValues, plan?: string) =>
    sluice.limit(name, key, { env, plan })
  await expect(call('other', 'a')).rejects.toThrow(
    'limit: policy: expected "by-ip" or "by-user", got "other"',
  )
  await expect(call('by-ip', 'ann')).rejects.toThrow(
    'limit: key: expected an IP address, or a network that shares a quota (the key of the policy by-ip is ip), got "ann"',
  )
  await expect(call('by-ip', ['192.0.2.1', 'b'])).rejects.toThrow(
    'limit: key: expected a value for each of ip',
  )
  await expect(call('by-ip', '192.0.2.1', 'gold')).rejects.toThrow(
    'limit: plan: expected nothing (the policy has no plans)',
  )
  expect((await call('by-ip', '192.0.2.1')).allowed).toBe(true)
})

test('A policy by name is refunded, and reset.', async () => {
  const { sluice } = doorsTo([{ name: 'login', key: 'header:x-user', limit: 5, window: '1h' }])
  const { decidedAt } = await sluice.limit('login', 'ann', { env, cost: 4 })
  const refunded = await sluice.refund('login', 'ann', { env, cost: 2, decidedAt })
  expect(refunded.limits).toMatchObject([{ remaining: 3 }])
  expect((await sluice.reset('login', 'ann', { env })).limits).toMatchObject([{ remaining: 5 }])
  expect((await sluice.peek('login', 'ann', { env })).remaining).toBe(5)
})

test('Two keys of one policy have a state each, and each is settled by its own, also over HTTP.', async () => {
  const policy = { name: 'seats', key: 'header:x-user', limit: 2, window: '1h' } as const
  const { sluice, ask } = doorsTo([
    { ...policy, mode: 'shadow' },
    { ...policy, name: 'places' },
  ])
  const limits: [string, string][] = [
    ['seats', 'ann'],
    ['seats', 'ben'],
  ]
  await sluice.limit('seats', 'ann', { env, cost: 2 })
  for (const settle of ['in process', 'over HTTP']) {
    const decision = await sluice.limit(limits, { env })
    expect(decision.limits.map(({ allowed }) => allowed)).toEqual([false, true])
    if (settle === 'in process') await decision.settle({ cost: 0 })
    else await ask('settle', { limits, decision, used: 0 })
    const left = limits.map(([name, key]) => sluice.peek(name, key, { env }))
    expect((await Promise.all(left)).map(({ remaining }) => remaining)).toEqual([0, 2])
  }
  const places = limits.map(([, key]) => ['places', key] as [string, string])
  const fields = (await sluice.limit(places, { env })).fields()
  expect(fields['RateLimit-Policy']).toBe('"places";q=2;w=3600')
})

test('Of two keys of one policy, an event names the one that refuses.', async () => {
  const events: DecisionEvent[] = []
  const onDecision = (event: DecisionEvent) => void events.push(event)
  const { limit } = createSluice({
    namespace: 'doors-observed',
    policies: [{ name: 'places', key: 'header:x-user', limit: 1, window: '1h' }],
    use: [observe({ onDecision, subjects: 'plain' })],
  })
  await limit('places', 'ben', { env })
  for (const keys of [
    ['ann', 'ben'],
    ['ben', 'cy'],
  ])
    await limit(
      keys.map((key) => ['places', key] as const),
      { env },
    )
  expect(events.map(({ subject }) => subject)).toEqual(Array(3).fill('header:x-user=ben'))
})

const quotas = ['fixed-window', 'sliding-window', 'token-bucket', 'gcra'] as const

property(
  'A call gets what the store has, as a peek tells it, whatever was given back before.',
  fc.record({
    algorithm: fc.constantFrom(...quotas),
    steps: fc.array(
      fc.record({
        call: fc.constantFrom('limit', 'limit', 'settle', 'refund', 'reset'),
        cost: fc.integer({ min: 1, max: 2 }),
      }),
      { maxLength: 8 },
    ),
  }),
  async ({ algorithm, steps }) => {
    const { sluice } = doorsTo([
      { name: 'quota', key: 'global', algorithm, limit: 3, window: '1h' },
    ])
    const { limit, peek, refund, reset } = sluice
    const taken: LimitDecision[] = []
    async function take(cost: number) {
      const { allowed } = await peek('quota', '', { cost, env })
      const decision = await limit('quota', '', { cost, env })
      expect(decision.allowed).toBe(allowed)
      if (allowed) taken.push(decision)
    }
    // Three units, and two refusals that the isolate may remember.
    for (const cost of [1, 1, 1, 1, 2]) await take(cost)
    for (const { call, cost } of steps) {
      if (call === 'limit') await take(cost)
      else if (call === 'refund') await refund('quota', '', { cost, env })
      else if (call === 'reset') await reset('quota', '', { env })
      else await taken.pop()?.settle({ cost: 0 })
    }
    await take(1)
  },
)

describe('The door of a request', () => {
  const policy = { name: 'per-user', limit: 5, window: '1h', key: 'header:x-user' } as const

  test.each(servers)('in %s counts what requests with that key count.', async (_, start) => {
    Object.assign(process.env, env)
    const url = await start(configOf({ policies: [policy] }))
    const remaining = []
    for (const path of ['/', '/more/Ann', '/more/ben', '/more/ann']) {
      const answer = await fetch(url + path, { headers: { 'x-user': 'ann' } })
      if (path !== '/') remaining.push(((await answer.json()) as LimitDecision).remaining)
    }
    expect(remaining).toEqual([2, 4, 0])
  })

  test('in a Worker has the variables and `waitUntil` of the request.', async () => {
    const app = new Hono()
      .use(rateLimiter({ namespace: 'door-of-a-request', policies: [{ ...policy, window: '1m' }] }))
      .get('/', async (c) => c.json(await c.var.sluice.limit('per-user', 'ann', { cost: 3 })))
    const work: Promise<unknown>[] = []
    const context = { waitUntil: (promise: Promise<unknown>) => void work.push(promise) }
    const ask = async () => (await app.request('/', {}, env, context as never)).json()
    vi.stubEnv('UPSTASH_REDIS_REST_URL', undefined)
    vi.stubEnv('UPSTASH_REDIS_REST_TOKEN', undefined)
    expect(await ask()).toMatchObject({ allowed: true, remaining: 2 })
    expect(await ask()).toMatchObject({ allowed: false, remaining: 2 })
    vi.unstubAllEnvs()
    expect(work.length).toBeGreaterThan(0)
  })
})
