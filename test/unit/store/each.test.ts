import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { createClient } from 'redis'
import { startBridge, startRedis } from 'sluice-upstash-bridge'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { StoreError } from '../../../src/base/errors.ts'
import type { Idempotency, StoreReply, StoreRequest } from '../../../src/store/store.ts'
import { createUpstashStore } from '../../../src/store/upstash/upstash.ts'
import { Model } from '../../model/model.ts'
import { commandsBetween } from '../../support/commands.ts'
import { play, tell } from '../../support/play.ts'
import { kinds, schedule } from '../../support/schedules.ts'
import { newSubject } from '../../support/subjects.ts'

let redis: Awaited<ReturnType<typeof startRedis>>
let bridge: Awaited<ReturnType<typeof startBridge>>
let client: Awaited<ReturnType<typeof connect>>
const connect = async () => createClient({ url: redis.url }).connect()

beforeAll(async () => {
  redis = await startRedis()
  bridge = await startBridge({ redis: redis.url, token: 'the-right-token' })
  client = await connect()
})
afterAll(async () => {
  client.destroy()
  await bridge.close()
  await redis.stop()
})

const newStore = (options: Partial<Parameters<typeof createUpstashStore>[0]> = {}) =>
  createUpstashStore({ url: bridge.url, token: bridge.token, deadlineMs: 10_000, ...options })

/** How many HTTP requests it takes. */
async function requestsOf(run: () => Promise<unknown>): Promise<number> {
  const { http } = bridge.stats()[bridge.token]!
  await run()
  return bridge.stats()[bridge.token]!.http - http
}

const policy: StoreRequest['limits'][number]['terms'] = {
  tag: 't',
  algorithm: 'fixed-window',
  limit: 100,
  windowMs: 3_600_000,
  burst: 100,
  align: 'first-request',
  localShare: 1,
}
const ask = (
  mode: StoreRequest['mode'],
  subjects: string[],
  row: Partial<StoreRequest['limits'][number]> = {},
): StoreRequest => ({
  mode,
  limits: subjects.map((subject) => ({ subject, terms: policy, cost: 1, ...row })),
})
const newSubjects = (count: number) => Array.from({ length: count }, newSubject)

/** What is left to each subject, or the code of the error. */
const told = (replies: (StoreReply | StoreError)[]) =>
  replies.map((reply) =>
    reply instanceof StoreError
      ? reply.code
      : reply.states.flat().map(({ remaining }) => remaining),
  )

/** A hundred clients with three subjects each: 300 keys, so three calls of the script. */
const hundred = () => Array.from({ length: 100 }, () => [ask('take', newSubjects(3))])

describe('many lists', () => {
  test('of three subjects each are one HTTP request for a hundred, cold and warm', async () => {
    const store = newStore()
    const lists = hundred()
    const asked = { time: 3, mget: 3, set: 300 }
    for (const [left, how] of [
      [99, { eval: 1, evalsha: 2 }],
      [98, { evalsha: 3 }],
    ] as const) {
      let http = 0
      const commands = await commandsBetween(redis.url, async () => {
        http = await requestsOf(async () => {
          const replies = await store.decideEach(lists)
          expect(told(replies)).toEqual(lists.map(() => [left, left, left]))
        })
      })
      expect(http).toBe(1)
      expect(commands).toEqual({ ...asked, ...how })
    }
  })

  test('that fit one call are one', async () => {
    const store = newStore()
    const lists = newSubjects(128).map((subject) => [ask('take', [subject])])
    expect(await commandsBetween(redis.url, () => store.decideEach(lists))).toEqual({
      eval: 1,
      time: 1,
      mget: 1,
      set: 128,
    })
  })

  test('have each the time of their own call', async () => {
    const replies = await newStore().decideEach(hundred(), { now: 1_789_000_000_000 })
    expect(replies.map((reply) => (reply as StoreReply).decidedAt)).toEqual(
      Array(100).fill(1_789_000_000_000),
    )
    const [first, , , last] = await newStore().decideEach(hundred())
    expect(Math.abs((first as StoreReply).decidedAt - Date.now())).toBeLessThan(5_000)
    expect((last as StoreReply).decidedAt).toBe((first as StoreReply).decidedAt)
  })

  test('that are none ask nobody', async () => {
    expect(await requestsOf(() => newStore().decideEach([]))).toBe(0)
    expect(await newStore({ url: undefined }).decideEach([])).toEqual([])
  })

  test('are each answered as if they were decided one after the other', async () => {
    const store = newStore()
    const shape = { policies: 4, subjects: 3, requests: 4, steps: 20, penalties: true }
    await fc.assert(
      fc.asyncProperty(schedule(kinds, { ...shape, operators: true }), async (plan) => {
        const { calls } = play(plan)
        const some = calls.map(({ requests }) => requests)
        // More than one call of the script holds.
        const lists = Array.from({ length: 5 }, () => some).flat()
        const model = new Model()
        const expected = lists.map((list) => model.decide(list, plan.start))
        const replies = await store.decideEach(lists as StoreRequest[][], { now: plan.start })
        expect(replies, tell(calls)).toEqual(expected)
      }),
      { numRuns: 150 },
    )
  })
})

describe('a list that fails', () => {
  const wrong: [
    claim: string,
    prepare: (subject: string) => Promise<StoreRequest>,
    cause: string,
  ][] = [
    [
      'by its arguments',
      async (subject) => ask('take', [subject], { cost: -1 }),
      'ERR sluice: row 1: unexpected cost',
    ],
    [
      'by a key of another type',
      async (subject) => {
        await client.set(`sluice:1:{${subject}}:log:t`, 'text')
        return ask('take', [subject], { terms: { ...policy, algorithm: 'sliding-log' } })
      },
      'WRONGTYPE',
    ],
    [
      'by a record of another format',
      async (subject) => {
        await client.set(`sluice:1:{${subject}}`, 'text')
        return ask('take', [subject])
      },
      'ERR sluice: key 1 holds a record of an unknown format',
    ],
    [
      'by its size',
      async () => ask('take', newSubjects(129)),
      'ERR sluice: KEYS: expected 1 to 128',
    ],
  ]

  test.each(wrong)('%s fails alone, and nobody is charged twice', async (_, prepare, cause) => {
    const store = newStore()
    const lists = hundred()
    lists[50] = [await prepare(newSubject())]
    for (const left of [99, 98]) {
      const replies = await store.decideEach(lists)
      const failed = replies[50] as StoreError
      expect([failed.code, failed.cause]).toEqual(['redis-error', cause])
      const others = told(replies.filter((_, index) => index !== 50))
      expect(others).toEqual(Array(99).fill([left, left, left]))
    }
  })

  test('is sent again by itself, idempotency, with those of its call, in one request', async () => {
    const store = newStore()
    const lists = hundred()
    lists[50] = [ask('take', ['x'], { cost: -1 })]
    await store.decideEach(lists)
    let http = 0
    const commands = await commandsBetween(redis.url, async () => {
      http = await requestsOf(() => store.decideEach(lists))
    })
    expect(http).toBe(2)
    // Three calls, and the 43 lists of the second, which has room for the small one, one by one.
    expect(commands).toMatchObject({ evalsha: 3 + 43, time: 2 + 42, set: 297 })
    const alone = [[ask('take', ['x'], { cost: -1 })]]
    expect(await requestsOf(() => store.decideEach(alone))).toBe(1)
  })
})

describe('a script that is lost', () => {
  test.skipIf(process.env.REDIS_URL)(
    'is brought again idempotency, and no list is charged twice',
    async () => {
      let reloads = 0
      const store = newStore({ onReload: () => (reloads += 1) })
      const lists = hundred()
      await store.decideEach(lists)
      await client.sendCommand(['SCRIPT', 'FLUSH'])
      const commands = await commandsBetween(redis.url, async () => {
        const replies = await store.decideEach(lists)
        expect(told(replies)).toEqual(Array(100).fill([98, 98, 98]))
      })
      expect(commands).toMatchObject({ eval: 1, time: 3, set: 300 })
      expect(reloads).toBe(1)
    },
  )
})

/** A server that answers the n-th request with what `answer` makes of its commands. */
async function answering(
  answer: (commands: string[][], number: number) => unknown,
  { status = 200, delayMs = 0 } = {},
) {
  let number = 0
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += chunk
    const body = answer(JSON.parse(text), number++)
    setTimeout(() => {
      response.writeHead(status, { location: bridge.url })
      response.end(typeof body === 'string' ? body : JSON.stringify(body))
    }, delayMs)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: () => number,
    [Symbol.dispose]: () => server.closeAllConnections(),
  }
}

/** Two lists, each too large for a call with the other. */
const two = () => [[ask('take', newSubjects(100))], [ask('take', newSubjects(100))]]
const good = { result: [1, ...Array.from({ length: 100 }, () => [1, 7, 0, 0, 0]).flat()] }
const sevens = Array(100).fill(7)

describe('a failure', () => {
  test.each<[claim: string, answer: unknown, codes: unknown[]]>([
    ['of one', [{ error: 'WRONGTYPE planted' }, good], ['redis-error', sevens]],
    ['of another', [good, { error: 'ERR planted' }], [sevens, 'redis-error']],
    ['that says nothing', [good, { error: '' }], [sevens, 'redis-error']],
    [
      'by the plan',
      [good, { error: 'ERR max daily request limit exceeded' }],
      [sevens, 'over-quota'],
    ],
    ['that is no integers', [good, { result: 'OK' }], [sevens, 'bad-reply']],
    [
      'that looks like integers',
      [good, { result: good.result.map(String) }],
      [sevens, 'bad-reply'],
    ],
    ['that is too short', [good, { result: [1, 2] }], [sevens, 'bad-reply']],
    ['that is null', [null, good], ['bad-reply', sevens]],
    ['that is a number', [7, good], ['bad-reply', sevens]],
    ['by an answer too few', [good], ['bad-reply', 'bad-reply']],
    ['by an answer too many', [good, good, good], ['bad-reply', 'bad-reply']],
    ['of all', { error: 'WRONGPASS planted' }, ['unauthorized', 'unauthorized']],
    ['of all, with a result', { result: good.result }, ['bad-reply', 'bad-reply']],
    ['of all, with nothing', 'null', ['bad-reply', 'bad-reply']],
    ['of all, with a page', '<html>planted</html>', ['bad-reply', 'bad-reply']],
  ])('%s is a value in its place: %j', async (_, answer, codes) => {
    using server = await answering(() => answer)
    const replies = await newStore({ url: server.url }).decideEach(two())
    expect(told(replies)).toEqual(codes)
    expect(server.requests()).toBe(1)
    for (const error of replies) {
      if (!(error instanceof StoreError)) continue
      const printed = `${error.stack} ${JSON.stringify(error)} ${String(error.cause)}`
      expect(printed).not.toMatch(/planted|the-right-token|allow-key-locking|sluice:1/)
    }
  })

  test.each([400, 500, 307])(
    'of the status %d is that of all, whatever the body says',
    async (status) => {
      using server = await answering(() => [good, good], { status })
      const replies = await newStore({ url: server.url }).decideEach(two())
      expect(told(replies)).toEqual(['redis-error', 'redis-error'])
      expect(server.requests()).toBe(1)
    },
  )

  test.each([
    [{ token: 'a-wrong-token' }, 'unauthorized'],
    [{ url: 'http://127.0.0.1:1' }, 'unreachable'],
    [{ url: undefined }, 'not-configured'],
  ])('of %j is told for each list', async (options, code) => {
    expect(told(await newStore(options).decideEach(two()))).toEqual([code, code])
    const one = [[ask('take', ['x'])], [ask('take', ['y'])]]
    expect(told(await newStore(options).decideEach(one))).toEqual([code, code])
  })

  test('to answer in time is a timeout of each, at one deadline for all that is sent', async () => {
    using server = await answering(
      (commands) => commands.map(() => ({ error: 'NOSCRIPT No matching script.' })),
      { delayMs: 150 },
    )
    const start = performance.now()
    const replies = await newStore({ url: server.url, deadlineMs: 250 }).decideEach(two())
    expect(told(replies)).toEqual(['timeout', 'timeout'])
    expect(performance.now() - start).toBeLessThan(1_000)
    expect(server.requests()).toBe(2)
  })

  test('to know the script is mended idempotency, for those alone that it concerns, by one that brings it', async () => {
    const seen: string[][] = []
    const lost = { error: 'NOSCRIPT No matching script.' }
    const answers = [
      [good, lost, lost],
      [good, lost],
    ]
    using server = await answering((commands, number) => {
      seen.push(commands.map(([name]) => name!))
      return answers[number]
    })
    const lists = [...two(), ...two().slice(1)]
    const replies = await newStore({ url: server.url }).decideEach(lists)
    expect(told(replies)).toEqual([sevens, sevens, 'redis-error'])
    expect(seen).toEqual([
      ['eval', 'evalsha', 'evalsha'],
      ['eval', 'evalsha'],
    ])
  })
})

describe('decided once', () => {
  const idempotencyOf = (changed: Partial<Idempotency> = {}): Idempotency => ({
    key: newSubject(),
    fingerprint: 'f',
    forMs: 60_000,
    ...changed,
  })
  const keysOf = (key: string) => client.keys(`sluice:1:{${key}*`)

  test('each call of the script has its own key, and tells on its lists that it is a replay', async () => {
    const store = newStore()
    const [lists, idempotency] = [hundred(), idempotencyOf()]
    const first = await store.decideEach(lists, { idempotency })
    expect(told(first)).toEqual(Array(100).fill([99, 99, 99]))
    const names = [idempotency.key, `${idempotency.key}.2`, `${idempotency.key}.3`].map(
      (key) => `sluice:1:{${key}}`,
    )
    expect((await keysOf(idempotency.key)).sort()).toEqual(names.sort())
    let again: unknown
    const commands = await commandsBetween(redis.url, async () => {
      again = await store.decideEach(lists, { idempotency })
    })
    expect(again).toEqual(first.map((reply) => ({ ...reply, replayed: true })))
    expect(commands).toEqual({ evalsha: 3, time: 3, mget: 3 })
  })

  test('a full call has room for its key', async () => {
    const lists = newSubjects(128).map((subject) => [ask('take', [subject])])
    const idempotency = idempotencyOf()
    const replies = await newStore().decideEach(lists, { idempotency })
    expect(told(replies)).toEqual(Array(128).fill([99]))
    expect(await keysOf(idempotency.key)).toHaveLength(1)
  })

  test('lists that are sent again by themselves are decided once, too', async () => {
    const store = newStore()
    const [lists, idempotency] = [hundred(), idempotencyOf()]
    for (const index of [10, 50, 99]) lists[index] = [ask('take', ['x'], { cost: -1 })]
    const first = await store.decideEach(lists, { idempotency })
    const again = await store.decideEach(lists, { idempotency })
    expect(told(again)).toEqual(told(first))
    expect(told(again)[0]).toEqual([99, 99, 99])
    expect(again.filter((reply) => 'replayed' in reply)).toHaveLength(97)
  })

  test('fifty at once, of several isolates, are charged once', async () => {
    const stores = Array.from({ length: 5 }, () => newStore())
    const [lists, idempotency] = [hundred(), idempotencyOf()]
    const all = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        stores[index % 5]!.decideEach(lists, { idempotency }),
      ),
    )
    for (const replies of all) expect(told(replies)).toEqual(Array(100).fill([99, 99, 99]))
    const replayed = all.flat().filter((reply) => 'replayed' in reply)
    expect(replayed).toHaveLength(49 * 100)
    const looks = lists.map(([request]) => [{ ...request!, mode: 'peek' as const }])
    expect(told(await newStore().decideEach(looks))).toEqual(Array(100).fill([99, 99, 99]))
  })

  test('another call of that name is a conflict, by decide and by decideEach', async () => {
    const store = newStore()
    const [lists, idempotency] = [two(), idempotencyOf()]
    await store.decideEach(lists, { idempotency })
    const other = { ...idempotency, fingerprint: 'g' }
    expect(told(await store.decideEach(lists, { idempotency: other }))).toEqual([
      'idempotency-conflict',
      'idempotency-conflict',
    ])
    await expect(store.decide(lists[0]!, { idempotency: other })).rejects.toThrow(
      /^idempotency-conflict: /,
    )
    const looks = lists.map(([request]) => [{ ...request!, mode: 'peek' as const }])
    expect(told(await store.decideEach(looks))).toEqual([Array(100).fill(99), Array(100).fill(99)])
  })

  test('decide tells a replay, and a first answer without a word', async () => {
    const store = newStore()
    const [request, idempotency] = [ask('take', [newSubject()]), idempotencyOf()]
    const first = await store.decide([request], { idempotency })
    expect(first).not.toHaveProperty('replayed')
    expect(await store.decide([request], { idempotency })).toEqual({ ...first, replayed: true })
    expect(await store.decideEach([[request]], { idempotency })).toEqual([
      { ...first, replayed: true },
    ])
  })
})
