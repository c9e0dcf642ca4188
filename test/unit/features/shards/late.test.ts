/** Shards with a database that fails or answers after the deadline. */
import { describe, expect, test } from 'vitest'
import { StoreError } from '../../../../src/core/base/errors.ts'
import type {
  Store,
  StoreReply,
  StoreRequest,
  StoreState,
} from '../../../../src/core/connection/store.ts'
import {
  allowed,
  follow,
  left,
  names,
  peek,
  policy,
  row,
  subjectAt,
  take,
  useShardedRedis,
} from '../../../support/sharded-redis.ts'

const { newShards } = useShardedRedis()

describe('a database that does not answer', () => {
  const codeOf = (reply: unknown) =>
    reply instanceof StoreError ? `${reply.store}: ${reply.code}` : 'a reply'

  test('The failure of one shard fails only its own keys, and the error has its name.', async () => {
    const { shards } = newShards(['eu-2'])
    const subjects = names.map(subjectAt)
    const replies = await shards.decideEach(subjects.map((subject) => [take(row(subject))]))
    expect(replies.map(codeOf)).toEqual(['a reply', 'eu-2: not-configured', 'a reply'])
    const alone = await Promise.all(
      subjects.map((subject) => shards.decide([take(row(subject))]).catch((error) => error)),
    )
    expect(alone.map(codeOf)).toEqual(['a reply', 'eu-2: not-configured', 'a reply'])
    expect((alone[1] as StoreError).message).toBe(
      'not-configured: set UPSTASH_REDIS_REST_URL_EU_2 and UPSTASH_REDIS_REST_TOKEN_EU_2 to the URL and token of a database',
    )
  })

  test('If a shard fails, the reply has the states with and without the charge, and the caller decides.', async () => {
    const { shards, waitUntil, settled } = newShards(['eu-2'])
    const [a, b, c] = names.map(subjectAt) as [string, string, string]
    const list = [
      take(row(a), row(b)),
      follow(row(b, { terms: { ...policy, tag: 'u' } })),
      follow(row(c)),
    ]
    const reply = await shards.decide(list, { waitUntil, allowPartial: true })
    await settled()
    for (const states of [reply.states, reply.uncharged!]) {
      const codes = states.map((limits) => limits.map(({ unanswered }) => unanswered?.error.code))
      expect(codes).toEqual([[undefined, 'not-configured'], ['not-configured'], [undefined]])
    }
    const remaining = (states: StoreState[][]) =>
      [states[0]![0]!, states[2]![0]!].map((one) => one.remaining)
    expect(remaining(reply.states)).toEqual([2, 2])
    expect(remaining(reply.uncharged!)).toEqual([3, 3])
    expect(await peek(shards, a, c)).toEqual([2, 2])
  })

  test('A failed shard does not matter if another shard refuses.', async () => {
    const { shards } = newShards(['eu-2'])
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    const reply = await shards.decide([take(row(a, { cost: 4 }), row(b))], { allowPartial: true })
    expect(allowed(reply)).toEqual([false, false])
    expect(reply.uncharged).toBeUndefined()
  })

  test('Without allowPartial, one failed shard fails the request, and the others refund it.', async () => {
    const { shards, waitUntil, settled } = newShards(['eu-2'])
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    const failure = await shards.decide([take(row(a), row(b))], { waitUntil }).catch((e) => e)
    await settled()
    expect(codeOf(failure)).toBe('eu-2: not-configured')
    expect(await peek(shards, a)).toEqual([3])
  })

  test('A refund that fails is reported to onRefund.', async () => {
    let takes = 0
    const { shards, refunded, waitUntil, settled } = newShards([], (store) => ({
      ...store,
      decide: (...call) =>
        call[0][0]!.mode === 'refund'
          ? Promise.reject(new StoreError('timeout'))
          : store.decide(...call).finally(() => takes++),
    }))
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    await shards.decide([take(row(a), row(b, { cost: 4 }))], { waitUntil })
    await settled()
    expect(takes).toBe(2)
    expect(refunded.map(codeOf)).toEqual(['eu-1: timeout'])
    expect(await peek(shards, a)).toEqual([2])
  })
})

describe('databases that answer late', () => {
  /** A shard that charges in time and replies after the deadline. */
  const lateAt =
    (late: string[], lateMode: StoreRequest['mode'] = 'take') =>
    (store: Store, name: string) => ({
      ...store,
      async decide(...call: Parameters<Store['decide']>) {
        const reply = await store.decide(...call)
        if (!late.includes(name) || !call[0].some(({ mode }) => mode === lateMode)) return reply
        throw new StoreError('timeout', undefined, undefined, Promise.resolve(reply))
      },
    })
  const allowPartial = true

  test('Late replies of all shards are merged, so that the caller can refund their charges.', async () => {
    const { shards, waitUntil, settled } = newShards([], lateAt(['eu-1', 'eu-2']))
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    const error = await shards
      .decide([take(row(a), row(b))], { waitUntil, allowPartial })
      .catch((error) => error)
    const late = (await (error as StoreError).late) as StoreReply
    await settled()
    expect(left(late)).toEqual([2, 2])
    expect(late.states[0]!.every(({ decidedAt: at }) => at !== undefined)).toBe(true)
    expect(await peek(shards, a, b)).toEqual([2, 2])
  })

  test('If one late reply is a refusal, the other shards refund.', async () => {
    const { shards, waitUntil, settled } = newShards([], lateAt(['eu-1', 'eu-2']))
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    const error = await shards
      .decide([take(row(a), row(b, { cost: 4 }))], { waitUntil, allowPartial })
      .catch((error) => error)
    expect(allowed((await error.late) as StoreReply)).toEqual([true, false])
    await settled()
    expect(await peek(shards, a, b)).toEqual([3, 3])
  })

  test.each(['peek', 'refund'] as const)(
    'A late reply to a %s refunds nothing, because it has charged nothing.',
    async (mode) => {
      const { shards, waitUntil, settled } = newShards([], lateAt(['eu-2'], mode))
      const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
      for (const subject of [a, b]) await shards.decide([take(row(subject, { cost: 2 }))])
      const list: StoreRequest[] =
        mode === 'peek'
          ? [{ mode, limits: [row(a, { cost: 4 }), row(b)] }]
          : [a, b].map((subject) => ({ mode, limits: [row(subject)] }))
      const allowPartial = mode === 'peek'
      await shards.decide(list, { waitUntil, allowPartial }).catch(() => {})
      await settled()
      await settled()
      expect(await peek(newShards().shards, a, b)).toEqual(mode === 'peek' ? [1, 1] : [2, 2])
    },
  )

  test('A late shard keeps the charge of a request that passes, even if another request in the list is refused.', async () => {
    const { shards, waitUntil, settled } = newShards([], lateAt(['eu-2']))
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    const list = [take(row(a, { cost: 4 })), take(row(b))]
    await shards.decide(list, { waitUntil, allowPartial })
    await settled()
    expect(await peek(shards, a, b)).toEqual([3, 2])
  })
})
