/** decideEach: the number of calls for many lists, and lists that fail. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { StoreError } from '../../../../src/core/base/errors.ts'
import type { StoreReply, StoreRequest } from '../../../../src/core/connection/store.ts'
import { Model } from '../../../model/model.ts'
import { commandsBetween } from '../../../support/commands.ts'
import { isLong } from '../../../support/long.ts'
import {
  ask,
  hundred,
  newSubjects,
  outcomes,
  policy,
  useBridge,
} from '../../../support/many-lists.ts'
import { formatCalls, runOnOracle } from '../../../support/run-on-oracle.ts'
import { kinds, schedule } from '../../../support/schedules.ts'
import { newSubject } from '../../../support/subjects.ts'

const { running, newStore, requestsOf } = useBridge()

describe('many lists', () => {
  test('A hundred lists of three subjects are one HTTP request, with or without a loaded script.', async () => {
    const store = newStore()
    const lists = hundred()
    const common = { time: 3, mget: 3, set: 300 }
    for (const [left, how] of [
      [99, { eval: 1, evalsha: 2 }],
      [98, { evalsha: 3 }],
    ] as const) {
      let http = 0
      const commands = await commandsBetween(running.redis.url, async () => {
        http = await requestsOf(async () => {
          const replies = await store.decideEach(lists, {})
          expect(outcomes(replies)).toEqual(lists.map(() => [left, left, left]))
        })
      })
      expect(http).toBe(1)
      expect(commands).toEqual({ ...common, ...how })
    }
  })

  test('Each reply has the time of the call that decided it.', async () => {
    const replies = await newStore().decideEach(hundred(), { now: 1_789_000_000_000 })
    expect(replies.map((reply) => (reply as StoreReply).decidedAt)).toEqual(
      Array(100).fill(1_789_000_000_000),
    )
    const [first, , , last] = await newStore().decideEach(hundred(), {})
    expect(Math.abs((first as StoreReply).decidedAt - Date.now())).toBeLessThan(5_000)
    expect((last as StoreReply).decidedAt).toBe((first as StoreReply).decidedAt)
  })

  test('An empty array of lists makes no HTTP request.', async () => {
    expect(await requestsOf(() => newStore().decideEach([], {}))).toBe(0)
    expect(await newStore({ url: undefined }).decideEach([], {})).toEqual([])
  })

  test('Lists get the same replies as serial decisions.', async () => {
    const store = newStore()
    const shape = { policies: 4, subjects: 3, requests: 4, steps: 20, penalties: true }
    await fc.assert(
      fc.asyncProperty(schedule(kinds, { ...shape, operators: true }), async (plan) => {
        const { calls } = runOnOracle(plan)
        const some = calls.map(({ requests }) => requests)
        // More lists than fit in one call of the script.
        const lists = Array.from({ length: 5 }, () => some).flat()
        const model = new Model()
        const expected = lists.map((list) => model.decide(list, plan.start))
        const replies = await store.decideEach(lists as StoreRequest[][], { now: plan.start })
        expect(replies, formatCalls(calls)).toEqual(expected)
      }),
      { numRuns: isLong ? 150 : 15 },
    )
  }, 120_000)
})

describe('a list with an error', () => {
  const wrong: [
    claim: string,
    prepare: (subject: string) => Promise<StoreRequest>,
    cause: string,
    code?: string,
  ][] = [
    [
      'for its arguments',
      async (subject) => ask('take', [subject], { cost: -1 }),
      'ERR sluice: request 1: unexpected cost',
      'internal',
    ],
    [
      'for a key of another type',
      async (subject) => {
        await running.client.set(`sluice:1:{${subject}}:log:t`, 'text')
        return ask('take', [subject], { terms: { ...policy, algorithm: 'sliding-log' } })
      },
      'WRONGTYPE',
    ],
    [
      'for a record of another format',
      async (subject) => {
        await running.client.set(`sluice:1:{${subject}}`, 'text')
        return ask('take', [subject])
      },
      'ERR sluice: key 1 holds a record of an unknown format',
    ],
    [
      'for its size',
      async () => ask('take', newSubjects(129)),
      'ERR sluice: call: unexpected number of keys',
      'internal',
    ],
  ]

  test.each(wrong)(
    'A list that is refused %s fails alone, and no list is charged twice.',
    async (_, prepare, cause, code = 'redis-error') => {
      const store = newStore()
      const lists = hundred()
      lists[50] = [await prepare(newSubject())]
      for (const left of [99, 98]) {
        const replies = await store.decideEach(lists, {})
        const failed = replies[50] as StoreError
        expect([failed.code, failed.cause]).toEqual([code, cause])
        const others = outcomes(replies.filter((_, index) => index !== 50))
        expect(others).toEqual(Array(99).fill([left, left, left]))
      }
    },
  )

  test('The lists of a failed call are sent again one by one, once, in one HTTP request.', async () => {
    const store = newStore()
    const lists = hundred()
    const unreadable = async () => {
      const subject = newSubject()
      await running.client.set(`sluice:1:{${subject}}`, 'text')
      return ask('take', [subject])
    }
    lists[50] = [await unreadable()]
    await store.decideEach(lists, {})
    let http = 0
    const commands = await commandsBetween(running.redis.url, async () => {
      http = await requestsOf(() => store.decideEach(lists, {}))
    })
    expect(http).toBe(2)
    // Three calls, then one call for each of the 43 lists of the second (42 of three keys, and the list of one key, the first of its set).
    expect(commands).toMatchObject({ evalsha: 3 + 42, eval: 1, time: 3 + 43, set: 297 })
    const alone = [[await unreadable()]]
    expect(await requestsOf(() => store.decideEach(alone, {}))).toBe(1)
  })
})

test('A call with an invalid list is not sent. Its other lists are sent one by one, after the other calls.', async () => {
  const store = newStore()
  const lists = hundred()
  await store.decideEach(lists, {})
  lists[50] = [ask('take', ['x'], { cost: -1 })]
  let http = 0
  const commands = await commandsBetween(running.redis.url, async () => {
    http = await requestsOf(() => store.decideEach(lists, {}))
  })
  expect(http).toBe(2)
  expect(commands).toMatchObject({ evalsha: 2 + 42, set: 297 })
  const alone = [[ask('take', ['x'], { cost: -1 })]]
  expect(await requestsOf(() => store.decideEach(alone, {}))).toBe(0)
})

describe('a script that Redis has lost', () => {
  test.skipIf(process.env.REDIS_URL)(
    'A lost script is sent again once, and no list is charged twice.',
    async () => {
      let reloads = 0
      const store = newStore({ onReload: () => (reloads += 1) })
      const lists = hundred()
      await store.decideEach(lists, {})
      await running.client.sendCommand(['SCRIPT', 'FLUSH'])
      const commands = await commandsBetween(running.redis.url, async () => {
        const replies = await store.decideEach(lists, {})
        expect(outcomes(replies)).toEqual(Array(100).fill([98, 98, 98]))
      })
      expect(commands).toMatchObject({ eval: 1, time: 3, set: 300 })
      expect(reloads).toBe(1)
    },
  )
})
