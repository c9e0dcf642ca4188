/** The events of real decisions: each outcome, and each way to decide, on a real Redis. */
import { type ExecutionContext, Hono } from 'hono'
import { describe, expect, test } from 'vitest'
import type { ConfigOptions } from '../../../src/core/config/options.ts'
import { bodies } from '../../../src/features/bodies/index.ts'
import { type DecisionEvent, observe } from '../../../src/features/observe/index.ts'
import { rateLimiter } from '../../../src/hosts/app/middleware.ts'
import { createSluice } from '../../../src/hosts/app/sluice.ts'
import { createGateway } from '../../../src/hosts/worker/gateway.ts'
import { useDatabase } from '../../support/database.ts'
import { bans, leases, plans, shield as shieldFeature } from '../../support/features.ts'

const database = useDatabase()

const policy = { name: 'a', limit: 2, window: '1h', algorithm: 'fixed-window' } as const

let addresses = 0
const newAddress = () => `198.51.100.${++addresses}`

/** A limiter with its events. */
function setUp(config: Partial<ConfigOptions>, variables: Record<string, unknown> = {}) {
  const events: DecisionEvent[] = []
  const sluice = createSluice<Request>({
    clientAddress: 'socket',
    deadline: '10s',
    policies: [policy],
    ...config,
    use: [
      bans(),
      shieldFeature(),
      observe({ onDecision: (event) => void events.push(event) }),
      ...(config.use ?? []),
    ],
  } as ConfigOptions<Request>)
  const env = { ...database.env, ...variables }
  const waiting: Promise<unknown>[] = []
  const waitUntil = (promise: Promise<unknown>) => void waiting.push(promise.catch(() => {}))
  const check = (address: string, url = 'http://x.example/', init: RequestInit = {}) =>
    sluice.check(new Request(url, init), { env, waitUntil, remoteAddress: address })
  /** The events of `times` requests, one after the other. */
  async function eventsOf(times: number, address = newAddress(), url?: string, init?: RequestInit) {
    events.length = 0
    for (let n = 0; n < times; n++) (await check(address, url, init)).settle(new Response(null))
    await Promise.all(waiting)
    return [...events]
  }
  return { check, eventsOf, events, waiting }
}

const brief = (events: DecisionEvent[]) =>
  events.map(({ outcome, decidedBy, policy }) => [outcome, decidedBy, policy])

/** The HTTP calls and billed commands of the bridge. */
const bill = () => {
  const { http, commands } = database.bridge.stats()[database.bridge.token] ?? {
    http: 0,
    commands: 0,
  }
  return { http, commands }
}

/** The result of some work, and its HTTP calls and billed commands. */
async function billed<T>(work: () => Promise<T>) {
  const before = bill()
  const result = await work()
  const { http, commands } = bill()
  return { result, http: http - before.http, commands: commands - before.commands }
}
const sum = (events: DecisionEvent[], read: (event: DecisionEvent) => number) =>
  events.reduce((total, event) => total + read(event), 0)

/** Sends decisions to the decision API, and expects success. */
async function post(
  config: Partial<ConfigOptions>,
  env: Record<string, string>,
  decisions: unknown[],
  { headers = {}, times = 1 } = {},
) {
  const gateway = createGateway({
    deadline: '10s',
    policies: [{ ...policy, limit: 9 }],
    ...config,
  })
  const token = 'a-api-token-for-tests'
  const init = {
    method: 'POST',
    body: JSON.stringify(decisions),
    headers: { Authorization: `Bearer ${token}`, ...headers },
  }
  const variables = { ...env, SLUICE_API_TOKEN: token }
  for (let time = 0; time < times; time++) {
    const response = await gateway.request(
      'http://limits.example/_sluice/v1/decide',
      init,
      variables,
    )
    expect(response.status).toBe(200)
  }
  return variables
}

describe('the events of requests', () => {
  test('Redis admits and refuses, and the denial cache repeats the refusal without a call.', async () => {
    const { result: events, ...cost } = await billed(() => setUp({}).eventsOf(4))
    expect(brief(events)).toEqual([
      ['allowed', 'store', 'a'],
      ['allowed', 'store', 'a'],
      ['limited', 'store', 'a'],
      ['limited', 'cache', 'a'],
    ])
    expect(events.map(({ remainingShare, near }) => [remainingShare, near])).toEqual([
      [0.5, false],
      [0, true],
      [0, true],
      [0, true],
    ])
    expect(events.map(({ calls, billedCommands }) => [calls, billedCommands])).toEqual([
      [1, 4],
      [1, 4],
      [1, 3],
      [0, 0],
    ])
    expect(events[0]).toHaveProperty('storeMs')
    expect(events[3]).not.toHaveProperty('storeMs')
    expect(cost).toEqual({ http: 3, commands: 11 })
    expect(new Set(events.map(({ subject }) => subject)).size).toBe(1)
    expect(events[0]!.subject).toMatch(/^[\w-]{16}$/)
  })

  test('The subject of an event is the name of the record in Redis.', async () => {
    const [event] = await setUp({}).eventsOf(1)
    const response = await fetch(database.bridge.url, {
      method: 'POST',
      headers: { authorization: `Bearer ${database.bridge.token}` },
      body: JSON.stringify(['EXISTS', `sluice:1:{${event!.subject}}`]),
    })
    expect(await response.json()).toEqual({ result: 1 })
  })

  test('If a policy has several quotas, the event names the client of the one that binds.', async () => {
    const tools = { ...policy, key: ['ip', 'body:tool'] as ['ip', 'body:tool'] }
    const { eventsOf } = setUp({ policies: [tools], use: [bodies()] })
    const address = newAddress()
    const call = async (...names: string[]) => {
      const body = JSON.stringify(names.map((tool) => ({ tool })))
      const headers = { 'content-type': 'application/json' }
      const init = { method: 'POST', headers, body }
      const [event] = await eventsOf(1, address, undefined, init)
      return event!
    }
    const [a, b] = [await call('a'), await call('b')]
    expect(a.subject).not.toBe(b.subject)
    expect(await call('a', 'b', 'b')).toMatchObject({ outcome: 'limited', subject: b.subject })
    expect(await call('a', 'a', 'b')).toMatchObject({ outcome: 'limited', subject: a.subject })
    expect(await call('b', 'c')).toMatchObject({ outcome: 'allowed', subject: b.subject })
    // Both refuse; by the denial cache, too.
    await call('a')
    for (const decidedBy of ['store', 'cache']) {
      expect(await call('c', 'b')).toMatchObject({ decidedBy, subject: b.subject })
    }
  })

  test('A ban is banned, by Redis and by the denial cache.', async () => {
    const penalty = { after: 1, within: '1h', ban: '1h' } as const
    const events = await setUp({ policies: [{ ...policy, limit: 1, penalty }] }).eventsOf(3)
    expect(brief(events)).toEqual([
      ['allowed', 'store', 'a'],
      ['banned', 'store', 'a'],
      ['banned', 'cache', 'a'],
    ])
  })

  test('Lists decide without the store: deny, allow, and a path without a policy.', async () => {
    const { eventsOf } = setUp({
      deny: { name: 'abuse', path: '/denied' },
      allow: { path: '/free' },
      policies: [{ ...policy, match: { path: ['/free', '/limited'] } }],
    })
    const before = bill()
    const events = [
      ...(await eventsOf(1, undefined, 'http://x.example/denied')),
      ...(await eventsOf(1, undefined, 'http://x.example/free')),
      ...(await eventsOf(1, undefined, 'http://x.example/other')),
    ]
    expect(brief(events)).toEqual([
      ['denied', 'list', 'abuse'],
      ['allowed', 'list', undefined],
      ['allowed', 'list', undefined],
    ])
    expect(bill()).toEqual(before)
  })

  test('A missing key with onMissingKey refuse is denied by its policy.', async () => {
    const policies = [{ ...policy, key: 'header:x-key', onMissingKey: 'refuse' }] as const
    const events = await setUp({ policies: [...policies] }).eventsOf(1)
    expect(brief(events)).toEqual([['denied', 'list', 'a']])
    expect(events[0]).not.toHaveProperty('subject')
  })

  test('The shield refuses without a call to Redis.', async () => {
    const SHIELD = { limit: async () => ({ success: false }) }
    const shield = { binding: 'SHIELD', limit: 1, period: '10s' } as const
    const before = bill()
    const events = await setUp({ shield }, { SHIELD }).eventsOf(1)
    expect(brief(events)).toEqual([['shielded', 'shield', 'a']])
    expect(bill()).toEqual(before)
  })

  test('Requests that a shadow policy would refuse are counted as such, and pass.', async () => {
    const policies = [
      { ...policy, limit: 9 },
      { ...policy, name: 'trial', limit: 1, mode: 'shadow' as const },
    ]
    const events = await setUp({ policies }).eventsOf(2)
    expect(brief(events)).toEqual([
      ['allowed', 'store', 'a'],
      ['would-refuse', 'store', 'trial'],
    ])
  })

  test('Leased units admit without a call.', async () => {
    const lease = { max: 4, ttl: '60s' } as const
    const { eventsOf } = setUp({
      policies: [{ ...policy, limit: 100, lease, key: 'global' }],
      use: [leases()],
    })
    const { result: events, http } = await billed(() => eventsOf(10))
    const byStore = events.filter(({ decidedBy }) => decidedBy === 'store')
    expect(new Set(events.map(({ decidedBy }) => decidedBy))).toEqual(new Set(['store', 'lease']))
    expect(byStore).toHaveLength(http)
    expect(
      events.filter(({ decidedBy, calls }) => (decidedBy === 'lease') !== (calls === 0)),
    ).toEqual([])
  })

  test.each([
    ['allow', true],
    ['deny', false],
    ['local', true],
  ] as const)(
    'Without the store the fallback %s decides, and the event names it.',
    async (onStoreError, allowed) => {
      const config = { policies: [{ ...policy, onStoreError }] }
      const url = 'http://127.0.0.1:9'
      const [event] = await setUp(config, { UPSTASH_REDIS_REST_URL: url }).eventsOf(1)
      expect(event).toMatchObject({
        outcome: 'store-error',
        decidedBy: 'local',
        policy: 'a',
        fallback: onStoreError,
        allowed,
        calls: 1,
        billedCommands: 0,
      })
    },
  )

  test('The event names the plan and the cost of the request.', async () => {
    const policies = [{ ...policy, cost: 3, limits: { pro: 30 }, plan: 'header:x-plan' as const }]
    const { eventsOf } = setUp({ policies, use: [plans()] })
    const [planned] = await eventsOf(1, undefined, undefined, { headers: { 'x-plan': 'pro' } })
    expect(planned).toMatchObject({ plan: 'pro', units: 3, remainingShare: 0.9 })
    const [unplanned] = await eventsOf(1)
    expect(unplanned).toMatchObject({ outcome: 'limited', units: 3 })
    expect(unplanned).not.toHaveProperty('plan')
  })

  test('The shares of concurrent decisions add up to the calls and commands of Redis.', async () => {
    const { check, events, waiting } = setUp({ policies: [{ ...policy, limit: 100 }] })
    const addresses = Array.from({ length: 50 }, (_, n) => `203.0.113.${n % 10}`)
    // The first requests load the script and cache the subjects. The others then reach the store in one turn of the event loop.
    for (const address of addresses.slice(0, 10)) await check(address)
    events.length = 0
    const { http, commands } = await billed(async () => {
      await Promise.all(addresses.map((address) => check(address)))
      await Promise.all(waiting)
    })
    expect(events).toHaveLength(50)
    expect(http).toBeLessThan(25) // they were batched
    expect(sum(events, ({ calls }) => calls)).toBeCloseTo(http, 6)
    expect(sum(events, ({ billedCommands }) => billedCommands)).toBeCloseTo(commands, 6)
  })
})

test('Each decision of the decision API has an event, with the context of the call. Peeks and replays have none.', async () => {
  const events: [DecisionEvent, unknown][] = []
  const onDecision = (event: DecisionEvent, context: unknown) => void events.push([event, context])
  const key = newAddress()
  const request = { url: 'http://x.example/', ip: key, country: 'DE', colo: 'FRA' }
  const decisions = [
    { policy: 'a', key },
    { policy: 'a', key, mode: 'peek' },
    { request, cost: 2 },
  ]
  const twice = { headers: { 'Idempotency-Key': key }, times: 2 }
  const env = await post({ use: [observe({ onDecision })] }, database.env, decisions, twice)
  expect(events.map(([{ units, country, colo, calls }]) => [units, country, colo, calls])).toEqual([
    [1, undefined, undefined, 1 / 3],
    [2, 'DE', 'FRA', 1 / 3],
  ])
  expect(events[0]![1]).toHaveProperty('env', env)
})

describe('to: trace', () => {
  /** The context of an invocation of a Worker with tracing. */
  function invocation() {
    const attributes: Record<string, unknown> = {}
    const setAttributes = (more: object) => void Object.assign(attributes, more)
    const tracing = { getActiveSpan: () => ({ isTraced: true, setAttributes }) }
    const waitUntil = () => {}
    return { attributes, ctx: { tracing, waitUntil, passThroughOnException() {}, props: {} } }
  }
  const config = {
    unconfigured: 'local',
    origin: 'http://127.0.0.1:1',
    policies: [{ ...policy, key: 'global', accept: 'global-key' }],
    deny: [{ name: 'bad', path: '/bad' }],
    use: [observe({ to: 'trace' })],
  } as const
  const url = 'https://www.example.com/bad'
  const denied = {
    'sluice.outcome': 'denied',
    'sluice.decided_by': 'list',
    'sluice.policy': 'bad',
  }

  test.each<[string, (ctx: ExecutionContext) => unknown]>([
    ['The gateway', (ctx) => createGateway(config as never).request(url, {}, {}, ctx)],
    [
      'The middleware',
      (ctx) => new Hono().use(rateLimiter(config as never)).request(url, {}, {}, ctx),
    ],
    [
      'createSluice with the context of the invocation',
      (context) => createSluice(config as never).check(new Request(url), { env: {}, context }),
    ],
  ])('%s finds the span of the invocation.', async (_, ask) => {
    const { attributes, ctx } = invocation()
    await ask(ctx as never)
    expect(attributes).toEqual(denied)
  })

  test.each([
    ['whose attributes cannot be set', { isTraced: true, setAttributes: fail }],
    ['that does not tell its trace', { isTraced: true, setAttributes() {}, spanContext: fail }],
  ])('A span %s changes nothing: the decision is counted and reported.', async (_, span) => {
    const events: DecisionEvent[] = []
    const use = [observe({ to: 'trace', onDecision: (event) => void events.push(event) })]
    const context = { tracing: { getActiveSpan: () => span } }
    const sluice = createSluice({ ...config, use } as never)
    await sluice.check(new Request(url), { env: {}, context } as never)
    expect(events).toMatchObject([{ outcome: 'denied' }])
    expect(events[0]).not.toHaveProperty('traceId')
  })
})

function fail(): never {
  throw new Error('the span has ended')
}
