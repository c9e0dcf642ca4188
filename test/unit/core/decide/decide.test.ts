import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { StoreError } from '../../../../src/core/base/errors.ts'
import type { ConfigOptions } from '../../../../src/core/config/options.ts'
import type { Store, StoreReply } from '../../../../src/core/connection/store.ts'
import { decideEach, prepare } from '../../../../src/core/decide/decide.ts'
import { createDenialCache } from '../../../../src/core/decide/denial-cache.ts'
import { limitsOf } from '../../../../src/core/decide/limit.ts'
import type { DecideOptions, LimiterParts, Question } from '../../../../src/core/decide/question.ts'
import { settle } from '../../../../src/core/decide/settle.ts'
import { createLocalStore } from '../../../../src/core/fallback/local.ts'
import { jwt } from '../../../../src/features/jwt/index.ts'
import { createMatcher } from '../../../support/create-matcher.ts'
import { splitOver } from '../../../support/split-store.ts'
import { storeOf } from '../../../support/store-of.ts'
import { failing, fallbackOver, lateStore } from '../../../support/with-fallback.ts'

/** The deadline that the store gets for a request, and the time that the matcher has spent, in ms. */
async function deadlineOf(config: ConfigOptions, init: RequestInit = {}) {
  const local = createLocalStore()
  let deadlineMs = Number.NaN
  const parts: LimiterParts = {
    store: {
      decide(requests, options) {
        deadlineMs = options!.deadlineMs!
        return local.decide(requests)
      },
      decideEach: local.decideEach,
    },
    nameSubject: async () => 'subject',
    onStoreError() {},
  }
  const describe = createMatcher(config)
  const startedAt = Date.now()
  const matched = await describe('/', init)
  const spentMs = Date.now() - startedAt
  const clock = vi.spyOn(Date, 'now').mockReturnValue(startedAt + spentMs)
  await decideEach([{ matched }], parts, { startedAt })
  clock.mockRestore()
  return { deadlineMs, spentMs }
}

const quota = { name: 'a', limit: 5, window: '1m' } as const

test('A slow key function leaves half of the deadline to the store.', async () => {
  const policies = [{ ...quota, deadline: 100, key: () => sleep(250, 'ann') }]
  expect((await deadlineOf({ policies })).deadlineMs).toBe(50)
})

test('A wait for the keys of an issuer takes at most half of the shortest deadline, and the store gets the rest.', async () => {
  const silent = createServer(() => {})
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const { port } = silent.address() as AddressInfo
  const token = `${btoa('{"alg":"RS256"}')}.e30.AA`.replaceAll('=', '')
  const config: ConfigOptions = {
    deadline: '20s',
    use: [jwt({ jwks: `http://127.0.0.1:${port}/` })],
    policies: [{ ...quota, deadline: '4s', key: 'jwt:sub' }],
  }
  const start = performance.now()
  const headers = { Authorization: `Bearer ${token}` }
  const { deadlineMs, spentMs } = await deadlineOf(config, { headers })
  silent.closeAllConnections()
  silent.close()
  const tookMs = performance.now() - start
  expect(tookMs).toBeGreaterThan(1900) // the decision has waited for the issuer
  expect(deadlineMs).toBe(4000 - spentMs)
  expect(deadlineMs).toBeGreaterThan(1000)
  expect(tookMs).toBeLessThan(5000)
})

/** A limiter over one database. */
function newLimiter(config: ConfigOptions, database: Store) {
  const local = createLocalStore()
  const denialCache = createDenialCache()
  const { store, errors } = fallbackOver(database, { local, denialCache })
  return { ...limiterOf(config, store, {}, { denialCache, errors }), local }
}

function limiterOf(
  config: ConfigOptions,
  store: Store,
  init: RequestInit,
  { denialCache = createDenialCache(), errors = [] as string[] } = {},
) {
  const parts: LimiterParts = {
    store,
    nameSubject: async (parts) => parts.map(([, value]) => value).join(),
    denialCache,
    onStoreError: ({ code }) => void errors.push(code),
  }
  const describe = createMatcher(config)
  async function ask(options: DecideOptions = {}, mode: Question['mode'] = 'take') {
    const matched = await describe('/', init)
    return (await decideEach([{ matched, mode }], parts, options))[0]!
  }
  const limits = async () => {
    const matches = (await describe('/', init)).policies
    return limitsOf(matches, undefined, parts)
  }
  return { ask, parts, errors, limits }
}

const single = { name: 'a', limit: 1, window: '1d', algorithm: 'fixed-window' } as const

test('A limit that the script has refused refuses the request, also if its wait is over.', async () => {
  // A reply that is replayed after the terms have changed.
  const local = createLocalStore()
  const decide: Store['decide'] = async (requests) => {
    const { decidedAt, states } = await local.decide(requests)
    return {
      decidedAt,
      states: states.map((all) => all.map((one) => ({ ...one, allowed: false }))),
    }
  }
  const { decision } = await newLimiter({ policies: [single] }, { ...local, decide }).ask()
  expect(decision).toMatchObject({ allowed: false, reason: 'limited', retryAfterMs: 0 })
})

test('After the refund of a late charge the isolate forgets cached refusals of the subject.', async () => {
  const { store, release } = lateStore(createLocalStore())
  const { ask } = newLimiter({ policies: [{ ...single, onStoreError: 'deny' }] }, store)
  const background: Promise<unknown>[] = []
  const waitUntil = (promise: Promise<unknown>) => void background.push(promise)
  const reasons = [(await ask({ waitUntil })).decision.reason, (await ask()).decision.reason]
  expect(reasons).toEqual(['store-error', 'limited'])
  release()
  await Promise.all(background)
  expect((await ask()).decision.reason).toBe('within-limit')
})

test('A failed refund of a late charge is logged, and is no unhandled rejection without waitUntil.', async () => {
  const { store, release } = lateStore(createLocalStore(), failing().decide)
  const { ask, errors } = newLimiter({ policies: [{ ...single, onStoreError: 'deny' }] }, store)
  const unhandled: unknown[] = []
  const listener = (error: unknown) => void unhandled.push(error)
  process.on('unhandledRejection', listener)
  await ask()
  release()
  await sleep(20)
  process.off('unhandledRejection', listener)
  expect([errors, unhandled]).toEqual([['timeout', 'unreachable'], []])
})

test('The local store does not learn from a replayed reply.', async () => {
  const state = { allowed: true, remaining: 1, retryAfterMs: 0, resetAfterMs: 1000, nextAfterMs: 1 }
  const replay: StoreReply = { decidedAt: 1000, replayed: true, states: [[state]] }
  const store = { ...createLocalStore(), decide: async () => replay }
  const { ask, local, limits } = newLimiter({ policies: [single] }, store)
  const [row] = await limits()
  const seenAt = Date.now() - 20_000
  const refused = { ...state, allowed: false, remaining: 0, retryAfterMs: 90_000 }
  local.learn(row!, { ...refused, resetAfterMs: 90_000 }, seenAt, seenAt)
  await ask({ idempotency: { key: 'k', fingerprint: 'f', forMs: 60_000 } })
  const { states } = await local.decide([{ mode: 'take', limits: [row!] }])
  expect(states[0]![0]!.allowed).toBe(false)
})

test('Local charges for a failed part can be refunded after the response, and are not part of the decision.', async () => {
  const local = createLocalStore()
  const store = splitOver([createLocalStore(), fallbackOver(failing(), { local }).store])
  // Each part has some of the ten keys.
  const policies = Array.from({ length: 10 }, (_, n) => ({
    ...single,
    name: `p${n}`,
    key: `header:x-${n}` as const,
    countOnly: '4xx' as const,
  }))
  const headers = Object.fromEntries(policies.map((_, n) => [`x-${n}`, `client-${n}`]))
  const { ask, parts } = limiterOf({ policies }, store, { headers })
  const { decision, charges } = await ask()
  expect(decision).toMatchObject({ allowed: true, reason: 'store-error', fallback: 'local' })
  expect(charges!.size).toBe(10)
  const counted = [...charges!].filter(([, { fallback }]) => fallback)
  expect(decision.limits).toHaveLength(10 - counted.length)
  const head = { status: 200, headers: new Headers() } // does not count
  await settle(charges!, parts, head, () => {})
  const limits = counted.map(([limit]) => limit)
  const { states } = await local.decide([{ mode: 'peek', limits }])
  expect(states[0]!.map(({ remaining }) => remaining)).toEqual(limits.map(() => single.limit))
})

describe('a request with a failed part', () => {
  /** Ten keys, some in each part. One policy is in shadow mode. */
  const policiesWith = (change: Partial<ConfigOptions['policies'][number]>) =>
    Array.from({ length: 10 }, (_, n) => ({
      ...single,
      name: `p${n}`,
      key: `header:x-${n}` as const,
      ...(n === 9 && { mode: 'shadow' as const }),
      ...change,
    }))
  const headers = Object.fromEntries(
    Array.from({ length: 10 }, (_, n) => [`x-${n}`, `client-${n}`]),
  )

  async function decideOnce(
    change: Partial<ConfigOptions['policies'][number]>,
    options: DecideOptions = {},
  ) {
    const living = createLocalStore()
    const store = splitOver([living, fallbackOver(failing()).store])
    const { ask, limits } = limiterOf({ policies: policiesWith(change) }, store, { headers })
    const work: Promise<unknown>[] = []
    const { decision } = await ask({ ...options, waitUntil: (promise) => void work.push(promise) })
    await Promise.all(work)
    const { states } = await living.decide([{ mode: 'peek', limits: await limits() }])
    return { decision, left: states[0]!.map(({ remaining }) => remaining) }
  }

  test('A request is refused if a policy of a failed part has onStoreError deny, and the charges of the other parts are refunded.', async () => {
    const { decision, left } = await decideOnce({ onStoreError: 'deny' })
    expect(decision).toMatchObject({ allowed: false, reason: 'store-error', fallback: 'deny' })
    expect(decision.limits.length).toBeGreaterThan(0)
    expect(decision.limits.every(({ remaining, limit }) => remaining === limit)).toBe(true)
    expect(decision.limits.every(({ decidedAt }) => decidedAt === undefined)).toBe(true)
    expect(decision).not.toHaveProperty('decidedAt')
    expect(new Set(left)).toEqual(new Set([single.limit]))
  })

  test('A request passes if the policies of a failed part have onStoreError allow, and the other parts keep their charges.', async () => {
    const { decision, left } = await decideOnce({ onStoreError: 'allow' })
    expect(decision).toMatchObject({ allowed: true, reason: 'store-error', fallback: 'allow' })
    expect(left).toContain(single.limit - 1)
  })

  test('If a part refuses, the decision is its refusal, whatever onStoreError of the failed part says.', async () => {
    const living = createLocalStore()
    const store = splitOver([living, fallbackOver(failing()).store])
    const policies = policiesWith({ onStoreError: 'allow' })
    const { ask } = limiterOf({ policies }, store, { headers })
    await ask()
    const { decision } = await ask()
    expect(decision).toMatchObject({ allowed: false, reason: 'limited' })
    expect(decision.retryAfterMs).toBeGreaterThan(0)
    expect(decision).not.toHaveProperty('fallback')
    expect(decision).not.toHaveProperty('decidedAt')
  })

  test.each([
    ['slots', { algorithm: 'concurrency', onStoreError: 'deny' }],
    ['units', { onStoreError: 'deny' }],
  ] as const)(
    'The %s of a part whose reply comes after the refusal are returned.',
    async (_, change) => {
      const taken: string[] = []
      const released: string[] = []
      const { store: late, release } = lateStore(createLocalStore(), async (requests, options) => {
        const refunds = requests.filter(({ mode }) => mode === 'refund')
        released.push(...refunds.flatMap(({ limits }) => limits.map(({ subject }) => subject)))
        return createLocalStore().decide(requests, options)
      })
      const decide: Store['decide'] = (requests, options) => {
        const takes = requests.filter(({ mode }) => mode === 'take' || mode === 'follow')
        taken.push(...takes.flatMap(({ limits }) => limits.map(({ subject }) => subject)))
        return late.decide(requests, options)
      }
      const store = splitOver([createLocalStore(), fallbackOver(storeOf(decide)).store])
      const { ask } = limiterOf({ policies: policiesWith(change) }, store, { headers })
      const work: Promise<unknown>[] = []
      const waitUntil = (promise: Promise<unknown>) => void work.push(promise)
      expect((await ask({ waitUntil })).decision).toMatchObject({
        allowed: false,
        fallback: 'deny',
      })
      release()
      for (const promise of work) await promise
      expect(taken.length).toBeGreaterThan(0)
      expect(new Set(released)).toEqual(new Set(taken))
    },
  )

  test('A refused peek with a failed part has limits without decidedAt.', async () => {
    const { store: late } = lateStore(createLocalStore())
    const store = splitOver([createLocalStore(), fallbackOver(late).store])
    const policies = policiesWith({ onStoreError: 'deny' })
    const { decision } = await limiterOf({ policies }, store, { headers }).ask({}, 'peek')
    expect(decision).toMatchObject({ allowed: false, fallback: 'deny' })
    expect(decision.limits.length).toBeGreaterThan(0)
    expect(decision.limits.every(({ decidedAt }) => decidedAt === undefined)).toBe(true)
  })

  test('A refused call with an idempotency key keeps its charges, so that a repeated call finds them.', async () => {
    const idempotency = { key: 'k', fingerprint: 'f', forMs: 1000 }
    const { decision, left } = await decideOnce({ onStoreError: 'deny' }, { idempotency })
    expect(decision.allowed).toBe(false)
    expect(left).toContain(single.limit - 1)
  })
})

test('A refusal from the denial cache is decided without a promise.', async () => {
  const policies = [{ ...single, key: 'global' as const }]
  const { ask, parts } = newLimiter({ policies }, createLocalStore())
  await ask()
  expect((await ask()).decision.reason).toBe('limited')
  const matched = await createMatcher({ policies })('/')
  expect(prepare({ matched }, parts)).toMatchObject({ decision: { reason: 'limited' } })
})

test('In a list with a used idempotency key no request waits: the call fails before.', async () => {
  const refused: StoreReply = {
    states: [[{ allowed: false, remaining: 0, retryAfterMs: 9, resetAfterMs: 9, nextAfterMs: 9 }]],
    decidedAt: Date.now(),
  }
  const replies = [refused, new StoreError('idempotency-conflict')]
  let waits = 0
  const wait = () => {
    waits += 1
    return Promise.reject(new Error('it asks again'))
  }
  const matched = await createMatcher({ policies: [{ ...single, key: 'global' }] })('/')
  const deciding = decideEach([{ matched }, { matched }], {
    store: { ...createLocalStore(), decideEach: async () => replies },
    waiting: { enter: () => ({ ticket: { id: 'a', leftMs: 9, waitedMs: 0 }, wait }), wake() {} },
    nameSubject: async () => 'subject',
    onStoreError() {},
  })
  await expect(deciding).rejects.toThrow('idempotency-conflict')
  expect(waits).toBe(0)
})

test('A peek neither uses nor fills the denial cache.', async () => {
  const { ask } = newLimiter({ policies: [{ ...single, key: 'global' }] }, createLocalStore())
  await ask()
  await ask({}, 'peek')
  expect((await ask()).decidedBy).toBeUndefined()
  expect((await ask()).decidedBy).toBe('cache')
  expect((await ask({}, 'peek')).decidedBy).toBeUndefined()
})

test('A shadow policy neither refuses nor shortens the deadline, and each policy has its own state.', async () => {
  const local = createLocalStore()
  let deadlineMs: number | undefined
  const decide: Store['decide'] = (requests, options) => {
    deadlineMs = options?.deadlineMs
    return local.decide(requests)
  }
  const shadow = { ...single, mode: 'shadow', deadline: 10 } as const
  const policies = [
    { ...shadow, name: 'strict' },
    { ...single, limit: 5, deadline: '20s' as const },
    { ...shadow, name: 'loose', limit: 3 },
  ]
  const { ask } = newLimiter({ policies }, { ...local, decide })
  await ask()
  const { decision } = await ask()
  expect(decision).toMatchObject({ allowed: true, reason: 'within-limit', retryAfterMs: 0 })
  expect(
    decision.limits.map(({ policy, allowed, remaining }) => [policy, allowed, remaining]),
  ).toEqual([
    ['strict', false, 0],
    ['a', true, 3],
    ['loose', true, 1],
  ])
  expect(deadlineMs).toBeGreaterThan(10)
})
