import { Redis } from '@upstash/redis'
import { watchStall } from 'sluice-bench'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { StoreErrorCode } from '../../src/core/base/errors.ts'
import type { PolicyOptions } from '../../src/core/config/options.ts'
import { parseConfig } from '../../src/core/config/parse.ts'
import { createUpstashStore } from '../../src/core/connection/upstash/upstash.ts'
import { exactOptions, upstash } from '../../src/stores/upstash.ts'
import type { RunningWorker } from '../../tools/worker.ts'
import { type FaultText, startFaults } from '../support/fault-proxy/index.ts'
import {
  type Answer,
  callsOf,
  type FaultStack,
  many,
  startFaultStack,
} from '../support/fault-stack.ts'
import { isLong } from '../support/long.ts'
import { testNoLeaks } from '../support/no-leaks.ts'
import { secrets } from '../support/secrets.ts'

const [SHORT, LONG] = [300, 5000]

/** Each fault, and the code with which the log reports it. */
const faults: [FaultText, StoreErrorCode][] = [
  ['delay=60000', 'timeout'],
  ['hang', 'timeout'],
  ['late=60000', 'timeout'],
  ['lose', 'timeout'],
  ['stall-body', 'timeout'],
  ['drip=200', 'timeout'],
  ['refuse', 'unreachable'],
  ['reset', 'unreachable'],
  ['reset-after', 'unreachable'],
  ['reset-body', 'unreachable'],
  ['truncated', 'bad-reply'],
  ['wrong-types=text', 'bad-reply'],
  ['wrong-types=fraction', 'bad-reply'],
  ['wrong-types=null', 'bad-reply'],
  ['wrong-shape', 'bad-reply'],
  ['html=502', 'bad-reply'],
  ['html=200', 'bad-reply'],
  ['garbage', 'bad-reply'],
  ['empty', 'bad-reply'],
  ['json={}', 'bad-reply'],
  ['json=null', 'bad-reply'],
  ['json={"result":null}', 'bad-reply'],
  ['status=429', 'redis-error'],
  ['status=500', 'redis-error'],
  ['status=502', 'redis-error'],
  ['status=503', 'redis-error'],
  ['redis-error', 'redis-error'],
  ['parrot', 'redis-error'],
  ['database-full', 'database-full'],
  ['unauthorized', 'unauthorized'],
  ['no-permission', 'unauthorized'],
  ['over-quota', 'over-quota'],
  ['daily-quota', 'over-quota'],
  ['suspended', 'over-quota'],
]

/**
 * The faults that also meet a Worker in `npm test`, because Workers and Node report broken connections differently. They share an isolate.
 * The last one opens its circuit.
 */
const some: FaultText[] = [
  'hang',
  'reset',
  'truncated',
  'status=503',
  'database-full',
  'over-quota',
]

/** A long deadline, so that a busy machine causes no timeout, and a short one for faults that cause a timeout. */
const policies = (['', '/short'] as const).flatMap((prefix) =>
  (['allow', 'deny', 'local'] as const).map(
    (onStoreError): PolicyOptions => ({
      name: `${prefix.slice(1)}${onStoreError}`,
      limit: 1000,
      window: '1d',
      localShare: 0.002, // two requests
      onStoreError,
      deadline: prefix ? SHORT : LONG,
      match: { path: `${prefix}/${onStoreError}` },
    }),
  ),
)
const paths = ['/allow', '/deny', '/local', '/local', '/local']
const total = (counts: Record<string, number>) =>
  Object.values(counts).reduce((sum, count) => sum + count, 0)

let stack: FaultStack
let worker: RunningWorker | undefined
/** The codes that the isolate has logged. */
let seen: string[]
let clients = 0

async function renew() {
  worker = await stack.renew({ policies })
  seen = []
  return worker
}

beforeAll(async () => {
  stack = await startFaultStack()
})
afterAll(() => stack.stop())

const senders = {
  'The REST transport': () => ({ url: stack.faults.url, token: secrets.token }),
  'The client @upstash/redis': (signal?: AbortSignal) => {
    const client = { url: stack.faults.url, token: secrets.token, ...exactOptions }
    const redis = new Redis(signal ? { ...client, signal: () => signal } : client)
    return { send: upstash(redis).connect({}) }
  },
}

test.each(
  Object.entries(senders).flatMap(([name, sender]) =>
    faults.map(([fault, code]) => {
      // The client throws the error of a failed connection if a reply has no result.
      const isVague = name.startsWith('The client') && ['json={}', 'json=null'].includes(fault)
      return { name, fault, code: isVague ? 'unreachable' : code, sender }
    }),
  ),
)(
  '$name makes a call that fails with $fault once, and reports $code.',
  async ({ fault, code, sender }) => {
    const [terms] = parseConfig({ policies: [{ name: 'a', limit: 5, window: '1h' }] }).policies
    const limits = [{ subject: fault, terms: terms!, cost: 1 }]
    // The deadline passes as soon as the call has arrived.
    const deadline = new AbortController()
    const database = sender(code === 'timeout' ? deadline.signal : undefined)
    const store = createUpstashStore({ ...database, deadlineMs: LONG })
    if (code === 'timeout') vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const before = callsOf(stack)
    await stack.faults.set(fault)
    const deciding = store.decide([{ mode: 'take', limits }])
    const failing = expect(deciding).rejects.toMatchObject({ name: 'StoreError', code })
    if (code === 'timeout') {
      await expect.poll(() => callsOf(stack) - before, { interval: 5 }).toBe(1)
      vi.advanceTimersByTime(LONG)
      vi.useRealTimers()
      deadline.abort(new DOMException('', 'TimeoutError'))
    }
    await failing
    await stack.faults.set(null)
    expect(callsOf(stack) - before).toBe(fault === 'refuse' ? 0 : 1)
  },
)

test('A call to the store follows no redirect, with or without the token.', async () => {
  const elsewhere = await startFaults({ target: stack.bridge.url })
  try {
    await renew()
    for (const location of ['/', `${elsewhere.url}/`] as const) {
      const before = stack.faults.counts().arrived.eval ?? 0
      await stack.faults.set(`redirect=${location}`)
      const { status } = await stack.get('/deny')
      await stack.faults.set(null)
      expect([status, stack.faults.counts().arrived.eval! - before]).toEqual([503, 1])
      expect(elsewhere.counts().arrived).toEqual({})
    }
    expect((await stack.logged('store-error')).map(({ code }) => code)).toEqual(['bad-reply'])
    seen.push('bad-reply')
  } finally {
    await elsewhere.close()
  }
})

test.each(isLong ? faults : faults.filter(([fault]) => some.includes(fault)))(
  'If the store fails with %s (%s), each request gets its fallback in time, and its call is made once.',
  async (fault, code) => {
    const { url } = isLong ? await renew() : (worker ?? (await renew()))
    const stall = watchStall(`${url}/free`)
    const isShort = code === 'timeout'
    const all = (ip: string) =>
      many(5, (n) => stack.get(`${isShort ? '/short' : ''}${paths[n]}`, { 'cf-connecting-ip': ip }))
    // Another client, because errors on a busy machine take from its local share.
    const usualMs = await vi.waitFor(
      decidedByRedis(() => all('198.51.100.1')),
      { timeout: 10_000, interval: 100 },
    )

    const before = stack.faults.counts()
    await stack.faults.set(fault)
    const start = performance.now()
    const answers = await all(`203.0.113.${++clients}`)
    const end = performance.now()
    await stack.faults.set(null)
    const after = stack.faults.counts()

    const [allow, deny, ...local] = answers as [Answer, Answer, ...Answer[]]
    expect([allow.status, allow.passed, limitFields(allow)]).toEqual([200, true, []])
    expect([deny.status, limitFields(deny)]).toEqual([503, []])
    expect(JSON.parse(deny.body).type).toMatch(/#temporary-reduced-capacity$/)
    expect(local.map(({ status }) => status).toSorted()).toEqual([200, 200, 429])
    expect(local.map(limitFields)).toEqual([[], [], []])

    const slowest = Math.max(...answers.map(({ ms }) => ms))
    const stalledMs = await stall.between(start, end)
    await stall.stop()
    // A timer that fires late waits as long again.
    expect(slowest - usualMs - 2 * stalledMs).toBeLessThan((isShort ? SHORT : LONG) + 20)

    seen.push(code)
    // Each code is logged once in ten seconds.
    const logged = (await stack.logged('store-error')).map((line) => line.code)
    expect(new Set(logged)).toEqual(new Set(seen))
    const calls = total(after.arrived) - total(before.arrived)
    if (fault === 'refuse') expect(calls).toBe(0)
    else expect(paths.map((_, index) => index + 1)).toContain(calls) // concurrent requests may be one batch
    expect(total(after.delivered) - total(before.delivered)).toBeLessThanOrEqual(calls)
  },
)

/** All header fields about limits. A fallback has none, because it has no numbers. */
const limitFields = ({ headers }: Answer) =>
  [...headers.keys()].filter((name) => /^(x-)?ratelimit|^sluice-/.test(name))

/** Sends requests, which Redis must decide. Returns the time of the slowest one in ms. */
function decidedByRedis(all: () => Promise<Answer[]>): () => Promise<number> {
  return async () => {
    const answers = await all()
    expect(answers.every(({ headers }) => headers.has('ratelimit'))).toBe(true)
    return Math.max(...answers.map(({ ms }) => ms))
  }
}

testNoLeaks(() => stack)
