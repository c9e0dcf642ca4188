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

/** A call to the inner store that has no answer yet. */
interface Call {
  /** The first subject of each list. */
  names: string[]
  deadlineMs: number | undefined
  answer: (replies: Replies) => void
  fail: (error: Error) => void
}

let now: number
let calls: Call[]
/** Requests that wait for their turn, in order. */
let turns: { ms: number; come: () => void }[]
/** Promises passed to `waitUntil`. */
let background: Promise<unknown>[]
let direct: [method: string, options: StoreOptions | undefined][]
let store: Store

beforeEach(() => {
  now = 1_000_000
  calls = []
  turns = []
  background = []
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
/** A reply that carries the name of its request. */
const replyTo = (name: string) => ({ decidedAt: name as never, states: [] }) satisfies StoreReply
const waitUntil = (promise: Promise<unknown>) => void background.push(promise)

/** Resolves with the name in the reply, or with the code of the error. */
const ask = (requests: StoreRequest[] | string, deadlineMs = 60_000): Promise<unknown> =>
  store
    .decide(typeof requests === 'string' ? list(requests) : requests, { deadlineMs, waitUntil })
    .then(
      (reply) => reply.decidedAt,
      (error: StoreError) => error.code,
    )

const settled = () => new Promise((resolve) => setImmediate(resolve))
/** Runs the turns of this many waiting requests, one after the other. */
async function turn(count = turns.length) {
  for (const { come } of turns.splice(0, count)) {
    come()
    await settled()
  }
}
const echo = ({ names, answer }: Call) => answer(names.map(replyTo))
/** Cancels a request: its turn never comes. */
const cancel = (index = 0) => turns.splice(index, 1)

describe('a batch', () => {
  test('Requests of one turn go in one call, in order, and each gets its own reply.', async () => {
    const replies = Promise.all(['ann', 'bob', 'eve'].map((name) => ask(name)))
    await turn()
    expect(calls.map(({ names }) => names)).toEqual([['ann', 'bob', 'eve']])
    echo(calls[0]!)
    expect(await replies).toEqual(['ann', 'bob', 'eve'])
  })

  test('A single request makes a call with one list.', async () => {
    const replies = ask('ann')
    await turn()
    expect(calls.map(({ names }) => names)).toEqual([['ann']])
    echo(calls[0]!)
    expect(await replies).toBe('ann')
  })

  test('A request does not wait for a call in flight.', async () => {
    const first = ask('ann')
    await turn()
    const second = ask('bob')
    await turn()
    expect(calls.map(({ names }) => names)).toEqual([['ann'], ['bob']])
    echo(calls[1]!)
    echo(calls[0]!)
    expect(await Promise.all([first, second])).toEqual(['ann', 'bob'])
  })

  test('A batch calls waitUntil once, and keeps the isolate alive until its reply.', async () => {
    void ask('ann')
    void ask('bob')
    await turn()
    expect(background).toHaveLength(1)
    let over = false
    void background[0]!.then(() => {
      over = true
    })
    await settled()
    expect(over).toBe(false)
    echo(calls[0]!)
    await settled()
    expect(over).toBe(true)
  })

  test('A batch has at most 32 limits, and the other requests go in further calls at once.', async () => {
    const replies = Promise.all(Array.from({ length: 70 }, (_, index) => ask(`${index}`)))
    await turn()
    expect(calls.map(({ names }) => names.length)).toEqual([32, 32, 6])
    expect(background).toHaveLength(3)
    for (const call of calls) echo(call)
    expect(await replies).toEqual(Array.from({ length: 70 }, (_, index) => `${index}`))
  })

  test('A limit with a penalty counts as two limits of a batch.', async () => {
    for (let index = 0; index < 20; index++) {
      const [{ mode, limits }] = list('ann') as [StoreRequest]
      void ask([{ mode, limits: [{ ...limits[0]!, penalty }] }])
    }
    await turn()
    expect(calls.map(({ names }) => names.length)).toEqual([16, 4])
  })

  test('A batch of long subjects stays below 16 KiB.', async () => {
    for (let index = 0; index < 4; index++) void ask('x'.repeat(6000))
    await turn()
    expect(calls.map(({ names }) => names.length)).toEqual([2, 2])
  })

  test('A list with more limits than a batch may have goes in a call by itself.', async () => {
    void ask(list('long', 100))
    void ask('ann')
    void ask('bob')
    await turn()
    expect(calls.map(({ names }) => names)).toEqual([['long'], ['ann', 'bob']])
  })
})

describe('a failure of a batch', () => {
  test('The error of one list reaches only its own request.', async () => {
    const replies = Promise.all(['ann', 'bob', 'eve'].map((name) => ask(name)))
    await turn()
    calls[0]!.answer([replyTo('ann'), new StoreError('redis-error'), replyTo('eve')])
    expect(await replies).toEqual(['ann', 'redis-error', 'eve'])
  })

  test('The error of a call reaches all of its requests, and no later request.', async () => {
    const replies = Promise.all([ask('ann'), ask('bob')])
    await turn()
    calls[0]!.answer([new StoreError('unreachable'), new StoreError('unreachable')])
    expect(await replies).toEqual(['unreachable', 'unreachable'])
    const next = ask('eve')
    await turn()
    echo(calls[1]!)
    expect(await next).toBe('eve')
  })

  test.each<[claim: string, end: (call: Call) => void]>([
    ['rejects the call', ({ fail }) => fail(new TypeError('no'))],
    ['answers fewer lists than it got', ({ answer }) => answer([])],
  ])('Each request gets an internal error if the store %s.', async (_, end) => {
    const replies = Promise.all([ask('ann'), ask('bob')])
    await turn()
    end(calls[0]!)
    expect(await replies).toEqual(['internal', 'internal'])
    await Promise.all(background)
    const next = ask('eve')
    await turn()
    echo(calls[1]!)
    expect(await next).toBe('eve')
  })
})

describe('the deadline of a batch', () => {
  test('Each request keeps its own deadline, and the call has the longest one.', async () => {
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

  test('A request times out at its deadline if its call never ends.', async () => {
    const replies = Promise.all([ask('ann', 40), ask('bob', 50)])
    await turn()
    expect(await replies).toEqual(['timeout', 'timeout'])
    const next = ask('eve')
    await turn()
    echo(calls[1]!)
    expect(await next).toBe('eve')
  })

  test('A request that times out before its turn makes no call, so nothing is charged.', async () => {
    expect(await ask('ann', 20)).toBe('timeout')
    await turn()
    expect(calls).toEqual([])
  })

  test('A request nameOf deadline has passed at its turn makes no call, even if its timer is late.', async () => {
    const replies = ask('ann', 60_000)
    now += 60_000
    await turn()
    expect(calls).toEqual([])
    expect(await replies).toBe('timeout')
  })

  test('The deadline does not grow if the clock is set back.', async () => {
    void ask('ann', 100)
    void ask('bob', 150)
    now -= 3_600_000
    await turn()
    expect(calls.map(({ names, deadlineMs }) => [names, deadlineMs])).toEqual([
      [['ann', 'bob'], 150],
    ])
  })

  test('Requests with very different deadlines go in different calls.', async () => {
    for (const deadline of [100, 5000, 200, 5000, 99]) void ask(`${deadline}`, deadline)
    await turn()
    expect(calls.map(({ names, deadlineMs }) => [names, deadlineMs])).toEqual([
      [['100', '200', '99'], 200],
      [['5000', '5000'], 5000],
    ])
  })
})

describe('a cancelled request', () => {
  test('A request that is cancelled before its turn has its list sent by the next request.', async () => {
    void ask('gone')
    cancel()
    const replies = Promise.all([ask('ann'), ask('bob')])
    await turn()
    expect(calls.map(({ names }) => names)).toEqual([['ann', 'gone', 'bob']])
    echo(calls[0]!)
    expect(await replies).toEqual(['ann', 'bob'])
  })

  test('The list of a cancelled request is not sent after its deadline.', async () => {
    void ask('gone', 60_000)
    cancel()
    now += 60_000
    void ask('ann')
    await turn()
    now += 1
    void ask('bob')
    await turn()
    expect(calls.map(({ names }) => names)).toEqual([['ann'], ['bob']])
  })

  test('Cancelled requests with more lists than fit in a batch delay no other request.', async () => {
    for (let index = 0; index < 100; index++) void ask('gone')
    turns = []
    const replies = ask('ann')
    await turn()
    expect(calls).toHaveLength(1)
    echo(calls[0]!)
    expect(await replies).toBe('ann')
  })
})

test('No list is sent twice, and every request that is not cancelled gets its own reply.', async () => {
  const event = fc.record({
    what: fc.constantFrom('ask', 'ask', 'ask', 'turn', 'turn', 'cancel', 'answer', 'pass'),
    which: fc.nat(20),
    deadlineMs: fc.constantFrom(300_000, 500_000, 5_000_000),
  })
  let count = 0
  await fc.assert(
    fc.asyncProperty(fc.array(event, { maxLength: 120 }), async (events) => {
      turns = []
      calls = []
      const nameOf = new Map<object, string>()
      const expected = new Map<string, Promise<unknown>>()
      async function next() {
        const [first, before] = [turns[0], turns.length]
        await turn(1)
        if (first && turns.length === before) nameOf.set(turns.at(-1)!, nameOf.get(first)!) // the request waits another 2 ms
      }
      for (const { what, which, deadlineMs } of events) {
        if (what === 'ask') {
          const name = `${count++}`
          expected.set(name, ask(name, deadlineMs))
          nameOf.set(turns.at(-1)!, name)
        } else if (what === 'turn') await next()
        else if (what === 'cancel' && turns[0]) {
          expected.delete(nameOf.get(turns[0])!)
          cancel()
        } else if (what === 'answer' && calls[which]) echo(calls[which])
        else if (what === 'pass') now += which
      }
      while (turns.length > 0) await turn()
      for (const call of calls) echo(call)
      const sent = calls.flatMap(({ names }) => names)
      expect(new Set(sent).size).toBe(sent.length)
      expect(await Promise.all(expected.values())).toEqual([...expected.keys()])
    }),
    { numRuns: 200 },
  )
})

describe('batching with six calls in flight', () => {
  const hold = async () => {
    for (let index = 0; index < 6; index++) {
      void ask('early', 1000)
      await turn()
    }
  }

  test('With six calls in flight, the next request waits 2 ms for others to join.', async () => {
    await hold()
    void ask('ann')
    await turn()
    void ask('bob')
    expect(calls).toHaveLength(6)
    expect(turns.map(({ ms }) => ms)).toEqual([2, 0])
    await turn(1)
    expect(calls[6]!.names).toEqual(['ann', 'bob'])
  })

  test('Once one of six calls has ended, the next request does not wait.', async () => {
    await hold()
    echo(calls[3]!)
    await settled()
    void ask('ann')
    await turn()
    expect(calls).toHaveLength(7)
  })

  test('Calls after their deadline do not count as in flight, because their requests may be cancelled.', async () => {
    await hold()
    now += 1000
    void ask('ann')
    await turn()
    expect(calls).toHaveLength(7)
  })
})

test('A request without waitUntil, with a given time or with an idempotency key joins no batch.', async () => {
  const idempotency: Idempotency = { key: 'k', fingerprint: 'f', forMs: 1000 }
  const all: StoreOptions[] = [{ deadlineMs: 5 }, { waitUntil, idempotency }, { waitUntil, now: 7 }]
  for (const options of all) await store.decide(list('ann'), options)
  await store.decide(list('ann'))
  expect(direct).toEqual([...all, {}].map((options) => ['decide', options]))
  expect([turns, background]).toEqual([[], []])
})

test('A decideEach call passes through unchanged.', async () => {
  const replies = store.decideEach([list('ann'), list('bob')], { deadlineMs: 7, waitUntil })
  expect(calls.map(({ names, deadlineMs }) => [names, deadlineMs])).toEqual([[['ann', 'bob'], 7]])
  echo(calls[0]!)
  expect(await replies).toEqual([replyTo('ann'), replyTo('bob')])
})
