/** The layer that answers by `onStoreError`, and its use of late replies. */
import { expect, test } from 'vitest'
import { StoreError } from '../../../../src/core/base/errors.ts'
import type { PolicyOptions } from '../../../../src/core/config/options.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import type { Correction, StoreReply, StoreRequest } from '../../../../src/core/connection/store.ts'
import type { PolicyLimit } from '../../../../src/core/decide/limit.ts'
import { createLocalStore } from '../../../../src/core/fallback/local.ts'
import { storeOf } from '../../../support/store-of.ts'
import { failing, fallbackOver, lateStore } from '../../../support/with-fallback.ts'

function limitsOf(...policies: Partial<PolicyOptions>[]): PolicyLimit[] {
  const named = policies.map((policy, index) => ({
    name: `p${index}`,
    limit: 3,
    window: '1h',
    algorithm: 'fixed-window' as const,
    ...policy,
  }))
  return parseConfig({ policies: named }).policies.map((policy) => ({
    terms: policy,
    partitionKey: [],
    subject: 's',
    cost: 1,
  }))
}

const take = (limits: PolicyLimit[]): StoreRequest[] => [{ mode: 'take', limits }]
const answersOf = ({ states }: StoreReply) =>
  states[0]!.map(({ allowed, fallback }) => [allowed, fallback!.by])
const remainingIn = async (
  store: { decide: ReturnType<typeof createLocalStore>['decide'] },
  limits: PolicyLimit[],
) => {
  const { states } = await store.decide([{ mode: 'peek', limits }])
  return states[0]!.map(({ remaining }) => remaining)
}

test('Without the option fallback, an error stays an error.', async () => {
  const { store, errors } = fallbackOver(failing())
  const limits = limitsOf({})
  await expect(store.decide(take(limits))).rejects.toMatchObject({ code: 'unreachable' })
  expect(await store.decideEach([take(limits)], {})).toMatchObject([{ code: 'unreachable' }])
  expect(errors).toEqual([])
})

test('If one policy denies, no other policy of the request is counted.', async () => {
  const local = createLocalStore()
  const { store, errors } = fallbackOver(failing(), { local })
  const limits = limitsOf({}, { onStoreError: 'deny' }, { onStoreError: 'allow' })
  const reply = await store.decide(take(limits), { fallback: true })
  expect(answersOf(reply)).toEqual([
    [true, 'local'],
    [false, 'deny'],
    [true, 'allow'],
  ])
  expect(await remainingIn(local, limits.slice(0, 1))).toEqual([3])
  expect(errors).toEqual(['unreachable'])
})

test('A ban that an operator has set through the isolate refuses there, while the database is down.', async () => {
  const [limit] = limitsOf({})
  const banned = { remaining: 3, resetAfterMs: 0, nextAfterMs: 0, bannedForMs: 30_000 }
  const database = storeOf(async (requests) => {
    if (requests[0]!.mode !== 'ban') throw new StoreError('unreachable')
    const state = { ...banned, allowed: false, retryAfterMs: 30_000 }
    return { decidedAt: Date.now(), states: [[state]] }
  })
  const { store } = fallbackOver(database)
  await store.decide([{ mode: 'ban', banMs: 30_000, limits: [limit!] }])
  const { states } = await store.decide(take([limit!]), { fallback: true })
  expect(states[0]![0]).toMatchObject({ allowed: false, fallback: { by: 'local' } })
  expect(states[0]![0]!.retryAfterMs).toBeGreaterThan(29_000)
})

test('Shadow policies never refuse, and each list has its own answer.', async () => {
  const { store } = fallbackOver(failing())
  const [shadow, one] = limitsOf({ mode: 'shadow', onStoreError: 'deny' }, { limit: 1 })
  const lists = [take([one!]), take([one!]), take([shadow!])]
  const replies = (await store.decideEach(lists, { fallback: true })) as StoreReply[]
  expect(replies.map(answersOf)).toEqual([[[true, 'local']], [[false, 'local']], [[true, 'allow']]])
})

test('A late charge of a refused request pays for units that the isolate has admitted, and is refunded only beyond them.', async () => {
  for (const admitted of [0, 1]) {
    const database = createLocalStore()
    const local = createLocalStore()
    const { store: late, release } = lateStore(database)
    const { store } = fallbackOver(late, { local })
    const limits = limitsOf({ limit: 1 }, { onStoreError: 'deny' })
    if (admitted > 0) await local.decide(take(limits.slice(0, 1)))
    const work: Promise<unknown>[] = []
    const waitUntil = (promise: Promise<unknown>) => void work.push(promise)
    await store.decide(take(limits), { waitUntil, fallback: true })
    expect(await remainingIn(database, limits)).toEqual([0, 2])
    release()
    await Promise.all(work)
    expect(await remainingIn(database, limits)).toEqual([1 - admitted, 3])
  }
})

test('The late charge of a refused call with an idempotency key stays: a repeated call gets the charged reply.', async () => {
  const database = createLocalStore()
  const { store: late, release } = lateStore(database)
  const { store } = fallbackOver(late)
  const limits = limitsOf({ onStoreError: 'deny' })
  const work: Promise<unknown>[] = []
  await store.decide(take(limits), {
    waitUntil: (promise) => void work.push(promise),
    fallback: true,
    idempotency: { key: 'k', fingerprint: 'f', forMs: 1000 },
  })
  release()
  await new Promise((resolve) => setImmediate(resolve))
  await Promise.all(work)
  expect(await remainingIn(database, limits)).toEqual([2])
})

test.each(['one list', 'several lists'])(
  'A correction goes to the isolate and, once it is known to have charged, to the database; other requests beside it go at once (%s).',
  async (form) => {
    const database = createLocalStore()
    const local = createLocalStore()
    const { store: late, release } = lateStore(database)
    const { store } = fallbackOver(late, { local })
    const [one, other] = limitsOf({}, { onStoreError: 'allow' })
    const { states } = await store.decide(take([one!]), { fallback: true })
    const { fallback } = states[0]![0]!
    await store.decide(take([other!]))
    const refunds: Correction[] = [
      { mode: 'refund', limits: [one!], decidedAt: Date.now(), fallback: fallback! },
      { mode: 'refund', limits: [other!], decidedAt: Date.now() },
    ]
    const settling =
      form === 'one list'
        ? store.decide(refunds)
        : store.decideEach(
            refunds.map((one) => [one]),
            {},
          )
    await new Promise((resolve) => setImmediate(resolve))
    expect(await remainingIn(local, [one!])).toEqual([3])
    expect(await remainingIn(database, [one!, other!])).toEqual([2, 3])
    release()
    await settling
    expect(await remainingIn(database, [one!])).toEqual([3])
  },
)

test('The isolate knows of its own refunds when the database fails.', async () => {
  let isDown = false
  let now = Date.now()
  const database = createLocalStore(() => ++now)
  const { store } = fallbackOver(
    storeOf((...call) => (isDown ? failing().decide(...call) : database.decide(...call))),
  )
  const [one] = limitsOf({ limit: 1 })
  const { decidedAt } = await store.decide(take([one!]), { fallback: true })
  await store.decide([{ mode: 'refund', limits: [one!], decidedAt }])
  isDown = true
  expect(answersOf(await store.decide(take([one!]), { fallback: true }))).toEqual([[true, 'local']])
})
