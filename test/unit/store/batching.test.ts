import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { StoreError } from '../../../src/base/errors.ts'
import { parseConfig } from '../../../src/config/parse.ts'
import { withBatching } from '../../../src/store/batching.ts'
import type {
  Idempotency,
  Store,
  StoreOptions,
  StoreReply,
  StoreRequest,
} from '../../../src/store/store.ts'

type Replies = (StoreReply | StoreError)[]

/** A call that the store underneath got, and has not answered yet. */
interface Call {
  /** The first subject of each list. */
  names: string[]
  deadlineMs: number | undefined
  answer: (replies: Replies) => void
  fail: (error: Error) => void
}

let now: number
let calls: Call[]
/** Requests whose turn has not come, in the order in which they asked for it. */
let turns: { ms: number; come: () => void }[]
/** What the isolate was asked to stay at work for. */
let kept: Promise<unknown>[]
let direct: [method: string, options: StoreOptions | undefined][]
let store: Store

beforeEach(() => {
  now = 1_000_000
  calls = []
  turns = []
  kept = []
  direct = []
  const inner: Store = {
    async decide(_, options) {
      direct.push(['decide', options])
      return replyTo('direct')
    },
    decideEach(lists, options) {
      const { promise, resolve, reject } = Promise.withResolvers<Replies>()
      calls.push({
        names: lists.map((list) => list[0]!.limits[0]!.subject),
        deadlineMs: options?.deadlineMs,
        answer: resolve,
        fail: reject,
      })
      return promise
    },
  }
  store = withBatching(inner, {
    clock: () => now,
    wait: (ms) => new Promise((come) => turns.push({ ms, come })),
  })
})

const [policy] = parseConfig({ policies: [{ name: 'a', limit: 5, window: '1m' }] }).policies
const penalty = { tag: 'p', after: 1, withinMs: 1, banMs: 1, maxMs: 1 }
const list = (subject: string, limits = 1): StoreRequest[] => [
  {
    mode: 'take',
    limits: Array.from({ length: limits }, () => ({ subject, terms: policy!, cost: 1 })),
  },
]
/** A reply that names whose it is. */
const replyTo = (name: string) => ({ decidedAt: name as never, states: [] }) satisfies StoreReply
const waitUntil = (promise: Promise<unknown>) => void kept.push(promise)

/** Whose reply comes, or the code of an error. */
const ask = (requests: StoreRequest[] | string, deadlineMs = 60_000): Promise<unknown> =>
  store
    .decide(typeof requests === 'string' ? list(requests) : requests, { deadlineMs, waitUntil })
    .then(
      (reply) => reply.decidedAt,
      (error: StoreError) => error.code,
    )

const settled = () => new Promise((resolve) => setImmediate(resolve))
/** Gives so many their turn, one after the other. */
async function turn(count = turns.length) {
  for (const { come } of turns.splice(0, count)) {
    come()
    await settled()
  }
}
const echo = ({ names, answer }: Call) => answer(names.map(replyTo))
/** Takes somebody's turn away: the request is gone, and nothing of it runs any more. */
const dies = (index = 0) => turns.splice(index, 1)

describe('one call', () => {
  test('has all that was asked in one turn, in its order, and each gets its own reply', async () => {
    const asked = Promise.all(['ann', 'bob', 'eve'].map((name) => ask(name)))
    await turn()
    expect(calls.map(({ names }) => names)).toEqual([['ann', 'bob', 'eve']])
    echo(calls[0]!)
    expect(await asked).toEqual(['ann', 'bob', 'eve'])
  })

  test('has one list where only one asks', async () => {
    const asked = ask('ann')
    await turn()
    expect(calls.map(({ names }) => names)).toEqual([['ann']])
    echo(calls[0]!)
    expect(await asked).toBe('ann')
  })

  test('does not wait for one under way', async () => {
    const first = ask('ann')
    await turn()
    const second = ask('bob')
    await turn()
    expect(calls.map(({ names }) => names)).toEqual([['ann'], ['bob']])
    echo(calls[1]!)
    echo(calls[0]!)
    expect(await Promise.all([first, second])).toEqual(['ann', 'bob'])
  })

  test('is what the isolate stays at work for, once for each', async () => {
    void ask('ann')
    void ask('bob')
    await turn()
    expect(kept).toHaveLength(1)
    let over = false
    void kept[0]!.then(() => {
      over = true
    })
    await settled()
    expect(over).toBe(false)
    echo(calls[0]!)
    await settled()
    expect(over).toBe(true)
  })

  test('has at most 32 limits: the others go at once, in calls of their own requests', async () => {
    const asked = Promise.all(Array.from({ length: 70 }, (_, index) => ask(`${index}`)))
    await turn()
    expect(calls.map(({ names }) => names.length)).toEqual([32, 32, 6])
    expect(kept).toHaveLength(3)
    for (const call of calls) echo(call)
    expect(await asked).toEqual(Array.from({ length: 70 }, (_, index) => `${index}`))
  })

  test('counts a penalty as a row', async () => {
    for (let index = 0; index < 20; index++) {
      const [{ mode, limits }] = list('ann') as [StoreRequest]
      void ask([{ mode, limits: [{ ...limits[0]!, penalty }] }])
    }
    await turn()
    expect(calls.map(({ names }) => names.length)).toEqual([16, 4])
  })

  test('is no longer than some KiB, however long the names of clients are', async () => {
    for (let index = 0; index < 4; index++) void ask('x'.repeat(6000))
    await turn()
    expect(calls.map(({ names }) => names.length)).toEqual([2, 2])
  })

  test('has a list alone that is longer than all may be', async () => {
    void ask(list('long', 100))
    void ask('ann')
    void ask('bob')
    await turn()
    expect(calls.map(({ names }) => names)).toEqual([['long'], ['ann', 'bob']])
  })
})

describe('what goes wrong', () => {
  test('with one list is told to its request alone', async () => {
    const asked = Promise.all(['ann', 'bob', 'eve'].map((name) => ask(name)))
    await turn()
    calls[0]!.answer([replyTo('ann'), new StoreError('redis-error'), replyTo('eve')])
    expect(await asked).toEqual(['ann', 'redis-error', 'eve'])
  })

  test('with a call is told to all, and to nobody who comes after', async () => {
    const asked = Promise.all([ask('ann'), ask('bob')])
    await turn()
    calls[0]!.answer([new StoreError('unreachable'), new StoreError('unreachable')])
    expect(await asked).toEqual(['unreachable', 'unreachable'])
    const next = ask('eve')
    await turn()
    echo(calls[1]!)
    expect(await next).toBe('eve')
  })

  test.each<[claim: string, end: (call: Call) => void]>([
    ['rejects', ({ fail }) => fail(new TypeError('no'))],
    ['answers to fewer than asked', ({ answer }) => answer([])],
  ])('is a fault of ours where the store %s', async (_, end) => {
    const asked = Promise.all([ask('ann'), ask('bob')])
    await turn()
    end(calls[0]!)
    expect(await asked).toEqual(['internal', 'internal'])
    await Promise.all(kept)
    const next = ask('eve')
    await turn()
    echo(calls[1]!)
    expect(await next).toBe('eve')
  })
})

describe('a deadline', () => {
  test("is each request's own, and the call has the longest", async () => {
    const short = ask('short', 60)
    now += 10
    const long = ask('long', 100)
    await turn()
    expect(calls.map(({ names, deadlineMs }) => [names, deadlineMs])).toEqual([
      [['short', 'long'], 100],
    ])
    expect(await short).toBe('timeout')
    echo(calls[0]!)
    expect(await long).toBe('long')
  })

  test('ends the wait for a call that never comes back', async () => {
    const asked = Promise.all([ask('ann', 40), ask('bob', 50)])
    await turn()
    expect(await asked).toEqual(['timeout', 'timeout'])
    const next = ask('eve')
    await turn()
    echo(calls[1]!)
    expect(await next).toBe('eve')
  })

  test('that has passed before its turn came: nothing is asked, so nothing is charged', async () => {
    expect(await ask('ann', 20)).toBe('timeout')
    await turn()
    expect(calls).toEqual([])
  })

  test('that has passed when its turn comes asks nothing either, however late its timer is', async () => {
    const asked = ask('ann', 60_000)
    now += 60_000
    await turn()
    expect(calls).toEqual([])
    expect(await asked).toBe('timeout')
  })

  test('is no longer by a clock that was set back', async () => {
    void ask('ann', 100)
    void ask('bob', 150)
    now -= 3_600_000
    await turn()
    expect(calls.map(({ names, deadlineMs }) => [names, deadlineMs])).toEqual([
      [['ann', 'bob'], 150],
    ])
  })

  test('of another order is that of another call: who may wait does not go with who is in haste', async () => {
    for (const deadline of [100, 5000, 200, 5000, 99]) void ask(`${deadline}`, deadline)
    await turn()
    expect(calls.map(({ names, deadlineMs }) => [names, deadlineMs])).toEqual([
      [['100', '200', '99'], 200],
      [['5000', '5000'], 5000],
    ])
  })
})

describe('a request that is gone', () => {
  test('before its turn leaves its list to the next', async () => {
    void ask('gone')
    dies()
    const asked = Promise.all([ask('ann'), ask('bob')])
    await turn()
    expect(calls.map(({ names }) => names)).toEqual([['ann', 'gone', 'bob']])
    echo(calls[0]!)
    expect(await asked).toEqual(['ann', 'bob'])
  })

  test('for longer than its deadline is not asked for', async () => {
    void ask('gone', 60_000)
    dies()
    now += 60_000
    void ask('ann')
    await turn()
    now += 1
    void ask('bob')
    await turn()
    expect(calls.map(({ names }) => names)).toEqual([['ann'], ['bob']])
  })

  test('with more than a call takes holds up nobody', async () => {
    for (let index = 0; index < 100; index++) void ask('gone')
    turns = []
    const asked = ask('ann')
    await turn()
    expect(calls).toHaveLength(1)
    echo(calls[0]!)
    expect(await asked).toBe('ann')
  })
})

test('whatever comes, and whoever goes, no list is sent twice, and all that live get their own reply', async () => {
  const event = fc.record({
    what: fc.constantFrom('ask', 'ask', 'ask', 'turn', 'turn', 'die', 'answer', 'pass'),
    which: fc.nat(20),
    deadlineMs: fc.constantFrom(300_000, 500_000, 5_000_000),
  })
  let count = 0
  await fc.assert(
    fc.asyncProperty(fc.array(event, { maxLength: 120 }), async (events) => {
      turns = []
      calls = []
      const whose = new Map<object, string>()
      const living = new Map<string, Promise<unknown>>()
      async function next() {
        const [first, before] = [turns[0], turns.length]
        await turn(1)
        if (first && turns.length === before) whose.set(turns.at(-1)!, whose.get(first)!) // it waits a little more
      }
      for (const { what, which, deadlineMs } of events) {
        if (what === 'ask') {
          const name = `${count++}`
          living.set(name, ask(name, deadlineMs))
          whose.set(turns.at(-1)!, name)
        } else if (what === 'turn') await next()
        else if (what === 'die' && turns[0]) {
          living.delete(whose.get(turns[0])!)
          dies()
        } else if (what === 'answer' && calls[which]) echo(calls[which])
        else if (what === 'pass') now += which
      }
      while (turns.length > 0) await turn()
      for (const call of calls) echo(call)
      const sent = calls.flatMap(({ names }) => names)
      expect(new Set(sent).size).toBe(sent.length)
      expect(await Promise.all(living.values())).toEqual([...living.keys()])
    }),
    { numRuns: 200 },
  )
})

describe('while six calls are under way', () => {
  const hold = async () => {
    for (let index = 0; index < 6; index++) {
      void ask('early', 1000)
      await turn()
    }
  }

  test('the next waits 2 ms for company', async () => {
    await hold()
    void ask('ann')
    await turn()
    void ask('bob')
    expect(calls).toHaveLength(6)
    expect(turns.map(({ ms }) => ms)).toEqual([2, 0])
    await turn(1)
    expect(calls[6]!.names).toEqual(['ann', 'bob'])
  })

  test('and one has come back, nobody waits', async () => {
    await hold()
    echo(calls[3]!)
    await settled()
    void ask('ann')
    await turn()
    expect(calls).toHaveLength(7)
  })

  test('those count no more whose deadline has passed: their requests may be gone', async () => {
    await hold()
    now += 1000
    void ask('ann')
    await turn()
    expect(calls).toHaveLength(7)
  })
})

test('who cannot keep the isolate at work asks alone; so does who names a time, or a call that is decided once', async () => {
  const idempotency: Idempotency = { key: 'k', fingerprint: 'f', forMs: 1000 }
  const all: StoreOptions[] = [{ deadlineMs: 5 }, { waitUntil, idempotency }, { waitUntil, now: 7 }]
  for (const options of all) await store.decide(list('ann'), options)
  await store.decide(list('ann'))
  expect(direct).toEqual([...all, {}].map((options) => ['decide', options]))
  expect([turns, kept]).toEqual([[], []])
})

test('many lists of one caller go as they come', async () => {
  const asked = store.decideEach([list('ann'), list('bob')], { deadlineMs: 7, waitUntil })
  expect(calls.map(({ names, deadlineMs }) => [names, deadlineMs])).toEqual([[['ann', 'bob'], 7]])
  echo(calls[0]!)
  expect(await asked).toEqual([replyTo('ann'), replyTo('bob')])
})
