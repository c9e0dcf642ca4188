/** A part whose database fails or answers after the deadline. */
import { describe, expect, test } from 'vitest'
import { StoreError } from '../../../../src/core/base/errors.ts'
import { Timeout } from '../../../../src/core/connection/deadline.ts'
import type { Store, StoreRequest } from '../../../../src/core/connection/store.ts'
import {
  allowed,
  follow,
  names,
  peek,
  policy,
  row,
  rowWith,
  subjectAt,
  take,
  useSplitRedis,
} from '../../../support/split-redis.ts'
import { storeOf } from '../../../support/store-of.ts'

const { newStore } = useSplitRedis()

describe('a database that does not answer', () => {
  const codeOf = (reply: unknown) => (reply instanceof StoreError ? reply.code : 'a reply')

  test('The failure of one part fails only its own keys.', async () => {
    const { store } = newStore(['part-2'])
    const subjects = names.map(subjectAt)
    const replies = await store.decideEach(
      subjects.map((subject) => [take(row(subject))]),
      {},
    )
    expect(replies.map(codeOf)).toEqual(['a reply', 'not-configured', 'a reply'])
    const alone = await Promise.all(
      subjects.map((subject) => store.decide([take(row(subject))]).catch((error) => error)),
    )
    expect(alone.map(codeOf)).toEqual(['a reply', 'not-configured', 'a reply'])
  })

  test.each([
    ['allow', 2],
    ['deny', 3],
  ] as const)(
    'A failed part whose policies have onStoreError %s looks like one with this answer.',
    async (by, remaining) => {
      const { store, waitUntil, settled } = newStore(['part-2'])
      const [a, b, c] = names.map(subjectAt) as [string, string, string]
      const list = [
        take(row(a), rowWith(by, b)),
        follow(row(b, { terms: { ...policy, tag: 'u' } })),
        follow(row(c)),
      ]
      const { states } = await store.decide(list, { waitUntil, fallback: true })
      await settled()
      const answers = states.map((limits) => limits.map(({ fallback }) => fallback?.by))
      expect(answers).toEqual([[undefined, by], ['allow'], [undefined]])
      const [first, , last] = states
      expect([first![0]!.remaining, last![0]!.remaining]).toEqual([remaining, remaining])
      expect(await peek(store, a, c)).toEqual([remaining, remaining])
    },
  )

  test('A failed part does not matter if another part refuses.', async () => {
    const { store } = newStore(['part-2'])
    const [a, b] = [subjectAt('part-1'), subjectAt('part-2')]
    const list = [take(row(a, { cost: 4 }), rowWith('allow', b))]
    const { states } = await store.decide(list, { fallback: true })
    expect(states[0]).toMatchObject([{ allowed: false }, { fallback: { by: 'allow' } }])
    expect(states[0]![0]).not.toHaveProperty('fallback')
  })

  test('Units that the isolate has counted for a failed part are returned if another part refuses.', async () => {
    const { store, waitUntil, settled } = newStore(['part-2'])
    const [a, b] = [subjectAt('part-1'), subjectAt('part-2')]
    const ask = (cost: number) => {
      const limits = [row(a, { cost }), rowWith('local', b, { cost: 3 })]
      return store.decide([take(...limits)], { waitUntil, fallback: true })
    }
    await ask(4)
    await settled()
    expect(allowed(await ask(1))).toEqual([true, true])
    expect(allowed(await ask(1))).toEqual([true, false])
    await settled()
    expect(await peek(store, a)).toEqual([2])
  })

  test('Without the option fallback, one failed part fails the request, and the others refund it.', async () => {
    const { store, waitUntil, settled } = newStore(['part-2'])
    const [a, b] = [subjectAt('part-1'), subjectAt('part-2')]
    const failure = await store.decide([take(row(a), row(b))], { waitUntil }).catch((e) => e)
    await settled()
    expect(codeOf(failure)).toBe('not-configured')
    expect(await peek(store, a)).toEqual([3])
  })

  test('A refund that fails is reported to onRefund.', async () => {
    let takes = 0
    const { store, refunded, waitUntil, settled } = newStore([], (store) =>
      storeOf((...call) =>
        call[0][0]!.mode === 'refund'
          ? Promise.reject(new StoreError('timeout'))
          : store.decide(...call).finally(() => takes++),
      ),
    )
    const [a, b] = [subjectAt('part-1'), subjectAt('part-2')]
    await store.decide([take(row(a), row(b, { cost: 4 }))], { waitUntil })
    await settled()
    expect(takes).toBe(2)
    expect(refunded.map(codeOf)).toEqual(['timeout'])
    expect(await peek(store, a)).toEqual([2])
  })
})

describe('databases that answer late', () => {
  /** A part that charges in time and replies after the deadline. */
  const lateAt =
    (late: string[], lateMode: StoreRequest['mode'] = 'take') =>
    (store: Store, name: string) =>
      storeOf(async (...call) => {
        const reply = await store.decide(...call)
        if (!late.includes(name) || !call[0].some(({ mode }) => mode === lateMode)) return reply
        throw new Timeout(Promise.resolve(reply))
      })
  const fallback = true
  /** Waits for the work in the background, and for the work that it starts. */
  const quiet = async (settled: () => Promise<unknown>) => {
    for (let turn = 0; turn < 3; turn += 1) await settled()
  }

  test('If all parts answer late, each keeps its charge of a request that passes.', async () => {
    const { store, waitUntil, settled } = newStore([], lateAt(['part-1', 'part-2']))
    const [a, b] = [subjectAt('part-1'), subjectAt('part-2')]
    const { states } = await store.decide([take(row(a), row(b))], { waitUntil, fallback })
    const times = await Promise.all(states[0]!.map(({ fallback }) => fallback!.late))
    expect(times).toEqual([expect.any(Number), expect.any(Number)])
    await quiet(settled)
    expect(await peek(store, a, b)).toEqual([2, 2])
  })

  test.each([
    ['of its own policies', 1, 'deny'],
    ['of the other part', 4, 'allow'],
  ] as const)(
    'A late charge of a request that is refused because %s is refunded.',
    async (_, cost, by) => {
      const { store, waitUntil, settled } = newStore([], lateAt(['part-2']))
      const [a, b] = [subjectAt('part-1'), subjectAt('part-2')]
      const list = [take(row(a, { cost }), rowWith(by, b))]
      await store.decide(list, { waitUntil, fallback })
      await quiet(settled)
      expect(await peek(store, a, b)).toEqual([3, 3])
    },
  )

  test.each(['peek', 'refund'] as const)(
    'A late reply to a %s refunds nothing, because it has charged nothing.',
    async (mode) => {
      const { store, waitUntil, settled } = newStore([], lateAt(['part-2'], mode))
      const [a, b] = [subjectAt('part-1'), subjectAt('part-2')]
      for (const subject of [a, b]) await store.decide([take(row(subject, { cost: 2 }))])
      const list: StoreRequest[] =
        mode === 'peek'
          ? [{ mode, limits: [row(a, { cost: 4 }), row(b)] }]
          : [a, b].map((subject) => ({ mode, limits: [row(subject)] }))
      const fallback = mode === 'peek'
      await store.decide(list, { waitUntil, fallback }).catch(() => {})
      await settled()
      await settled()
      expect(await peek(newStore().store, a, b)).toEqual(mode === 'peek' ? [1, 1] : [2, 2])
    },
  )

  test('A late part keeps the charge of a request that passes, even if another request in the list is refused.', async () => {
    const { store, waitUntil, settled } = newStore([], lateAt(['part-2']))
    const [a, b] = [subjectAt('part-1'), subjectAt('part-2')]
    const list = [take(row(a, { cost: 4 })), take(row(b))]
    await store.decide(list, { waitUntil, fallback })
    await settled()
    expect(await peek(store, a, b)).toEqual([3, 2])
  })
})
