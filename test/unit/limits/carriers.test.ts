/**
 * The carriers of one interface: in process, over HTTP with the client and without it, and by RPC. The same schedule gives the same decisions
 * and leaves the same records. `LAW_RUNS=1000000 npm test -- test/unit/limits/carriers.test.ts` runs 100,000 schedules on each store.
 */
import * as fc from 'fast-check'
import { type RunningRedis, startBridge } from 'sluice-upstash-bridge'
import { afterAll, beforeAll, describe, expect, vi } from 'vitest'
import { expressionOf, neededBy } from '../../../cli/build/module.ts'
import { built, limits as builtLimits } from '../../../src/built/limits.ts'
import { createClient } from '../../../src/client/client.ts'
import type { Decision, LimitStatus } from '../../../src/core/base/decision.ts'
import type { ConfigOptions } from '../../../src/core/config/options.ts'
import * as features from '../../../src/features/compile.ts'
import { createSluice } from '../../../src/hosts/app/sluice.ts'
import { deployed } from '../../../src/hosts/worker/deployed.ts'
import { createGateway } from '../../../src/hosts/worker/gateway.ts'
import type { LimitDecision, LimitKey, Limits } from '../../../src/limits/door.ts'
import { type LimitsConfig, limits, parseLimitsConfig } from '../../../src/limits/limits.ts'
import { RateLimit } from '../../../src/rpc.ts'
import { durableObjects } from '../../../src/stores/durable-objects/index.ts'
import { borrowRedis } from '../../support/borrow-redis.ts'
import { useInstantDigests } from '../../support/instant-digests.ts'
import { lawRuns, property } from '../../support/law.ts'
import { memoryObjects } from '../../support/memory-objects.ts'
import { type Connection, openConnection } from '../../support/redis-connection.ts'

// The platform makes entrypoints with this class. rpc.test.ts runs them in workerd.
vi.mock('cloudflare:workers', () => ({
  WorkerEntrypoint: class {
    readonly ctx: object
    readonly env: object
    constructor(ctx: object, env: object) {
      this.ctx = ctx
      this.env = env
    }
  },
}))

const key = 'header:x-user'
const terms = { limit: 6, window: '10s', key } as const
const policies: ConfigOptions['policies'] = [
  { ...terms, name: 'fixed', algorithm: 'fixed-window' },
  { ...terms, name: 'clock', algorithm: 'fixed-window', align: 'clock', cost: 2 },
  { ...terms, name: 'sliding', algorithm: 'sliding-window' },
  { ...terms, name: 'bucket', algorithm: 'token-bucket', burst: 4 },
  { ...terms, name: 'paced', algorithm: 'gcra', burst: 3 },
  { ...terms, name: 'log', algorithm: 'sliding-log' },
  { ...terms, name: 'slots', algorithm: 'concurrency' },
  { ...terms, name: 'shadow', mode: 'shadow', limit: 2 },
  {
    ...terms,
    name: 'banning',
    algorithm: 'fixed-window',
    limit: 2,
    penalty: { after: 2, within: '1m', ban: '5s', max: '1m' },
  },
]
/** For at most 500 ms, as long as a call of the decision API waits by default. */
const wait = '400ms'
const waiting: ConfigOptions['policies'] = [
  { ...terms, name: 'line', algorithm: 'token-bucket', limit: 60, burst: 4, wait },
  { ...terms, name: 'window', algorithm: 'fixed-window', limit: 4, window: '300ms', wait },
  { ...terms, name: 'log', algorithm: 'sliding-log', limit: 4, window: '300ms', wait },
  { ...terms, name: 'slots', algorithm: 'concurrency', limit: 4 },
  { ...terms, name: 'shadow', mode: 'shadow', limit: 2 },
]

const TOKEN = 'a-token-of-the-decision-api-for-tests'
const start = 1_789_000_000_000

type Pairs = [name: string, key: string][]
type Step = { afterMs: number } & (
  | { call: 'limit' | 'peek'; pairs: Pairs; cost: number | undefined }
  | { call: 'refund'; pair: Pairs[0]; cost: number; of: number }
  | { call: 'reset'; pair: Pairs[0] }
  | { call: 'settle'; of: number; used: number }
)

interface Shape {
  /** The pauses between steps, ms. */
  pauses: number[]
  keys: string[]
  /** The first steps of each schedule. */
  first: Step[]
}

const usual: Shape = {
  pauses: [0, 0, 1, 700, 3_000, 11_000],
  keys: ['ann', 'Ben', ''.padEnd(300, 'c')],
  first: [],
}

/** Calls of one key, of which the fifth waits. */
const crowd: Shape = {
  pauses: [0, 0, 0, 1, 90, 700],
  keys: ['ann'],
  first: Array(5).fill({ afterMs: 0, call: 'limit', pairs: [['line', 'ann']], cost: 1 }),
}

const stepOf = (
  policies: ConfigOptions['policies'],
  { pauses, keys }: Shape,
): fc.Arbitrary<Step> => {
  const pair = fc.tuple(
    fc.constantFrom(...policies.map(({ name }) => name)),
    fc.constantFrom(...keys),
  )
  const units = fc.nat({ max: 4 })
  return fc
    .tuple(
      fc.constantFrom(...pauses),
      fc.oneof(
        {
          weight: 5,
          arbitrary: fc.record({
            call: fc.constantFrom('limit', 'limit', 'peek'),
            pairs: fc.uniqueArray(pair, { minLength: 1, maxLength: 3, selector: String }),
            cost: fc.option(units, { nil: undefined }),
          }),
        },
        fc.record({
          call: fc.constant('refund'),
          pair,
          cost: units,
          of: fc.nat({ max: 9 }),
        }),
        fc.record({ call: fc.constant('reset'), pair }),
        fc.record({ call: fc.constant('settle'), of: fc.nat({ max: 9 }), used: units }),
      ),
    )
    .map(([afterMs, call]) => ({ afterMs, ...call }) as Step)
}

/** A carrier: the calls of `Limits`, and how a decision is settled. */
interface Carrier extends Pick<Limits, 'refund' | 'reset'> {
  decide: (call: 'limit' | 'peek', pairs: Pairs, cost: number | undefined) => Promise<Decision>
  settle: (decision: Decision, pairs: Pairs, used: number) => Promise<unknown>
}

/** What passes a border: data, without functions. */
const data = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T
const context = { waitUntil() {}, passThroughOnException() {}, props: {} }

function sendTo(gateway: ReturnType<typeof createGateway>, env: object) {
  return (url: string, init: RequestInit) =>
    Promise.resolve(gateway.fetch(new Request(url, init), env as never, context))
}

function ofLimits(limits: Limits, env?: object): Carrier {
  const runtime = env && { env }
  return {
    refund: (name, key, options) => limits.refund(name, key, { ...options, ...runtime }),
    reset: (name, key) => limits.reset(name, key, { ...runtime }),
    decide: (call, pairs, cost) =>
      pairs.length === 1
        ? limits[call](...pairs[0]!, { cost, ...runtime })
        : limits[call](pairs, { cost, ...runtime }),
    settle: (decision, _, used) => (decision as LimitDecision).settle({ cost: used }),
  }
}

type Make = (config: ConfigOptions, env: object) => Carrier

const inProcess: Make = (config, env) => ofLimits(createSluice(config), env)

const overHttp: Make = (config, env) =>
  ofLimits(
    createClient({
      url: 'https://limits.example.com',
      token: TOKEN,
      deadlineMs: 60_000,
      onError: 'throw',
      fetch: sendTo(createGateway({ ...config, accept: 'no-origin' }), env),
    }),
  )

const byHand: Make = (config, env) => {
  const send = sendTo(createGateway({ ...config, accept: 'no-origin' }), env)
  async function post<T>(path: string, body: object): Promise<T> {
    const response = await send(`https://limits.example.com/_sluice/v1/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}` },
      body: JSON.stringify(body),
    })
    return (await response.json()) as T
  }
  return {
    refund: (policy, key, options) => post<LimitStatus>('refund', { policy, key, ...options }),
    reset: (name, key) => post<LimitStatus>(`policies/${name}/reset`, { key }),
    decide: (call, limits, cost) =>
      post<Decision>('decide', { limits, cost, ...(call === 'peek' && { mode: 'peek' }) }),
    settle: (decision, limits, used) => post('settle', { limits, decision, used }),
  }
}

const byRpc: Make = (config, env) => {
  createGateway({ ...config, accept: 'no-origin' })
  const limiter = deployed.limiter!
  const entry = () => {
    deployed.limiter = limiter
    return new (RateLimit as unknown as new (ctx: object, env: object) => RateLimit)(context, env)
  }
  return {
    refund: (policy, key, options) => entry().refund({ policy, key, ...(options as object) }),
    reset: (policy, key) => entry().reset({ policy, key }),
    async decide(call, pairs, cost) {
      const [[policy, key]] = pairs as unknown as [LimitKey]
      const about = pairs.length === 1 ? { policy, key } : { limits: pairs }
      const { success, ...decision } = data(await entry()[call]({ ...about, cost } as never))
      expect(success).toBe(decision.allowed)
      return decision
    },
    settle: (decision, limits, used) => entry().settle({ limits, decision, used }),
  }
}

const carriers = { inProcess, overHttp, byHand, byRpc }

/** The policies as limits. They count under other names of clients than the policies, which read them from requests. */
const configOfLimits = ({ store, namespace, deadline, policies }: ConfigOptions): LimitsConfig => ({
  ...{ namespace: namespace!, deadline: deadline!, ...(store && { store }) },
  limits: Object.fromEntries(policies.map(({ name, key: _, ...terms }) => [name, terms as never])),
})

const byTerms: Make = (config, env) => {
  const { limits: terms, ...options } = configOfLimits(config)
  return ofLimits(limits(terms, options), env)
}

/** As the module of `sluice build`. */
const byModule: Make = (config, env) => {
  const options = configOfLimits(config)
  const parsed = parseLimitsConfig(options)
  const { text } = expressionOf(parsed, options as never)
  const needed = neededBy(parsed)
  const own = {
    names: Object.keys(options.limits),
    config: new Function('options', `return ${text}`)(options),
    features: Object.entries(features).flatMap(([name, one]) => (needed.includes(name) ? one : [])),
  }
  return ofLimits(builtLimits(built(own)), env)
}

/** How the time passes between the steps of a schedule, and while one of them runs. */
interface Time {
  pass(ms: number): unknown
  during<T>(call: Promise<T>): Promise<T>
}

/** Time that stands still in a call. */
const still: Time = { pass: (ms) => vi.setSystemTime(Date.now() + ms), during: (call) => call }

/** Time that goes on when nothing else is left to do. */
const flowing: Time = {
  pass: (ms) => vi.advanceTimersByTimeAsync(ms),
  async during(call) {
    let isDone = false
    const done = () => {
      isDone = true
    }
    call.then(done, done)
    for (;;) {
      for (let turn = 0; turn < 10 && !isDone; turn++) await new Promise(setImmediate)
      if (isDone) return call
      await vi.advanceTimersToNextTimerAsync()
    }
  },
}

/** All that the steps have answered, without the random ids of slots. */
async function run(carrier: Carrier, steps: Step[], time: Time): Promise<unknown[]> {
  vi.setSystemTime(start)
  const taken: { decision: Decision; pairs: Pairs }[] = []
  const settled = new Set<unknown>()
  const answers: unknown[] = []
  for (const one of steps) {
    await time.pass(one.afterMs)
    if (one.call === 'limit' || one.call === 'peek') {
      const before = Date.now()
      const decision = await time.during(carrier.decide(one.call, one.pairs, one.cost))
      const waitedMs = Date.now() - before
      if (waitedMs > 0) waits += 1
      if (one.call === 'limit') taken.push({ decision, pairs: one.pairs })
      // Only a door in process and the client add the numbers of the limit that binds.
      const { limit: _, remaining, resetAfterMs, ...rest } = data(decision) as LimitDecision
      answers.push({ ...rest, waitedMs, ...(rest.slot && { slot: 'random' }) })
    } else if (one.call === 'refund') {
      const { decision } = taken[one.of] ?? {}
      const { decidedAt, slot } = decision ?? {}
      const options = { cost: one.cost, decidedAt, ...(slot && { slot }) }
      answers.push(data(await time.during(carrier.refund(...one.pair, options))))
    } else if (one.call === 'reset') {
      answers.push(data(await time.during(carrier.reset(...one.pair))))
    } else if (one.call === 'settle') {
      const charge = taken[one.of]
      if (!charge?.decision.allowed || settled.has(charge)) continue
      settled.add(charge)
      await time.during(carrier.settle(charge.decision, charge.pairs, one.used))
    }
  }
  return answers
}

let runs = 0
let waits = 0
const ID = /[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g

/** States the law for a store. `open` makes the environment of one carrier, and reads its records. */
function lawOn(
  options: ConfigOptions,
  open: (namespace: string) => { env: object; records: () => Promise<unknown> },
) {
  lawOf(`${SAME} by each carrier.`, carriers, options, open)
  lawOf(`${SAME} by limits that are built and not built.`, { byTerms, byModule }, options, open)
}

const SAME = 'The same schedule gives the same decisions and the same records'

function lawOf(
  claim: string,
  carriers: Record<string, Make>,
  options: ConfigOptions,
  open: Parameters<typeof lawOn>[1],
  time = still,
  shape = usual,
) {
  property(
    claim,
    fc.array(stepOf(options.policies, shape), { minLength: 4, maxLength: 12 }),
    async (drawn) => {
      runs += 1
      const steps = [...shape.first, ...drawn]
      const results: unknown[] = []
      for (const [name, make] of Object.entries(carriers)) {
        const namespace = `carrier-${runs}-${name.toLowerCase()}`
        const { env, records } = open(namespace)
        const tokens = { SLUICE_API_TOKEN: TOKEN, SLUICE_OPERATE_TOKEN: TOKEN }
        const config = { ...options, namespace, clientAddress: 'socket', deadline: '20s' }
        const carrier = make(config as ConfigOptions, {
          ...env,
          ...tokens,
          SLUICE_SECRET: 'secret',
        })
        results.push({ answers: await run(carrier, steps, time), records: await records() })
      }
      for (const other of results.slice(1)) expect(other).toEqual(results[0])
    },
    Math.ceil(lawRuns / 10),
    1,
  )
}

property(
  'A call that is neither a name with a key nor a list of them has one error by each carrier.',
  fc.oneof(
    fc.oneof(
      fc.constantFrom(undefined, null, true),
      fc.integer(),
      fc.dictionary(fc.string(), fc.nat()),
    ),
    fc
      .tuple(fc.array(fc.constantFrom<unknown>(['fixed', 'ann'], 'fixed', 1, null, {})))
      .map(([list]) => [...list, 'ann']),
    fc.constantFrom(
      [[undefined, 'ann']],
      [[7, 'ann']],
      [
        ['fixed', 'ann'],
        [null, 'ann'],
      ],
    ),
  ),
  async (first) => {
    const client = createClient({ url: 'https://limits.example.com', token: TOKEN })
    const errorOf = (limits: Limits, call: 'limit' | 'peek') =>
      (limits[call] as (...given: unknown[]) => Promise<unknown>)(
        first,
        Array.isArray(first) ? undefined : 'ann',
      ).catch(String)
    for (const call of ['limit', 'peek'] as const) {
      const own = await errorOf(createSluice({ policies }), call)
      expect(own).toMatch(/^TypeError: (limit|peek): (policy|limits\[\d+\]): expected /)
      expect(await errorOf(client, call)).toBe(own)
    }
  },
)

useInstantDigests()
beforeAll(() => void vi.useFakeTimers({ now: start, toFake: ['Date'] }))
afterAll(() => void vi.useRealTimers())

describe('On Redis', () => {
  let redis: RunningRedis
  let bridge: Awaited<ReturnType<typeof startBridge>>
  let connection: Connection
  beforeAll(async () => {
    redis = await borrowRedis()
    bridge = await startBridge({ redis: redis.url, token: 'token', clock: () => Date.now() })
    connection = await openConnection(redis.url)
  })
  afterAll(async () => {
    connection?.destroy()
    await bridge?.close()
    await redis?.stop()
  })

  lawOn({ policies }, (namespace) => ({
    env: { UPSTASH_REDIS_REST_URL: bridge.url, UPSTASH_REDIS_REST_TOKEN: bridge.token },
    async records() {
      const all: Record<string, unknown> = {}
      const keys = (await connection.sendCommand(['KEYS', `*${namespace}*`])) as string[]
      for (const key of keys.sort()) {
        const isSet = (await connection.sendCommand(['TYPE', key])) === 'zset'
        const content = isSet
          ? await connection.sendCommand(['ZRANGE', key, '0', '-1', 'WITHSCORES'])
          : await connection.sendCommand(['GET', key])
        // The ids of slots are random, and so is their order.
        const members = `${content}`.replace(ID, 'id').match(/[^,]+,[^,]+/g)
        const kept = isSet ? members?.toSorted() : content
        all[key.replace(namespace, '')] = kept
      }
      if (keys.length > 0) await connection.sendCommand(['DEL', ...keys]) // KEYS reads all that is left
      return all
    },
  }))
})

/** Objects of one namespace in this process. */
function objectsOf(namespace: string) {
  const { objects, at } = memoryObjects()
  const named = new Set<string>()
  const idFromName = (name: string) => {
    named.add(name)
    return objects.idFromName(name)
  }
  const recording = { ...objects, idFromName, jurisdiction: () => recording }
  return {
    env: { SLUICE_SUBJECT: recording },
    async records() {
      vi.setSystemTime(0) // nothing has expired
      const all: [string, string][] = []
      for (const name of [...named].sort()) {
        const { subject, rows } = at(name)
        await subject.alarm() // a timer, which a busy machine may run before, writes the exact counts
        all.push([name.replace(namespace, ''), JSON.stringify([...rows]).replace(ID, 'id')])
      }
      return all
    },
  }
}

describe('On Durable Objects', () => {
  lawOn({ policies, store: durableObjects() }, objectsOf)
})

describe('On Durable Objects, with limits that let calls wait', () => {
  beforeAll(() => {
    vi.useFakeTimers({ now: start, toFake: ['Date', 'setTimeout', 'clearTimeout'] })
  })

  afterAll(() => expect(waits).toBeGreaterThan(0))

  const options = { policies: waiting, store: durableObjects() }
  lawOf(
    `${SAME} by each carrier, after the same waits.`,
    carriers,
    options,
    objectsOf,
    flowing,
    crowd,
  )
})
