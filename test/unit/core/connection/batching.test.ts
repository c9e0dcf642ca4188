import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { StoreError } from '../../../../src/core/base/errors.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import { connect } from '../../../../src/core/connection/connection.ts'
import { withDeadline } from '../../../../src/core/connection/deadline.ts'
import type {
  Idempotency,
  Store,
  StoreOptions,
  StoreReply,
  StoreRequest,
} from '../../../../src/core/connection/store.ts'
import { storeBy } from '../../../../src/core/connection/store.ts'
import { isLong } from '../../../support/long.ts'

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
/** Requests that wait, in order. */
let waits: { ms: number; end: () => void }[]
/** Promises passed to `waitUntil`. */
let background: Promise<unknown>[]
let inner: Store
let store: Store

beforeEach(() => {
  now = 1_000_000
  calls = []
  waits = []
  background = []
  const call = (lists: StoreRequest[][], options: StoreOptions | undefined) => {
    const { promise, resolve, reject } = Promise.withResolvers<Replies>()
    const names = lists.map((list) => list[0]!.limits[0]!.subject)
    calls.push({ names, deadlineMs: options?.deadlineMs, answer: resolve, fail: reject })
    return promise
  }
  inner = storeBy(call)
  const clock = () => now
  const later = (ms: number, end: () => void) => void waits.push({ ms, end })
  store = withDeadline(connect(inner, { clock, later }), clock)
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
const echo = ({ names, answer }: Call) => answer(names.map(replyTo))
/** Ends the waits that match, one after the other. */
async function end(matching: typeof waits) {
  waits = waits.filter((one) => !matching.includes(one))
  for (const { end } of matching) {
    end()
    await settled()
  }
}
const opening = () => waits.filter(({ ms }) => ms <= 2)
/** Ends the waits of requests that opened a batch. One that nobody has joined waits twice. */
async function turn() {
  await end(opening())
  await end(opening())
}
/** Ends the waits of requests that joined a batch. */
const lapse = () => end(waits.filter(({ ms }) => ms > 2))
/** Makes a call that stays in flight, so that other requests open a batch. */
const occupy = () => {
  void ask('early', 1_000_000)
  return calls.pop()!
}
/** Kills the request with this wait. */
const kill = (index = 0) => waits.splice(index, 1)

describe('a request that is sent at once', () => {
  test('The request is sent without waitUntil.', async () => {
    const reply = ask('ann')
    expect([calls.map(({ names }) => names), waits, background]).toEqual([[['ann']], [], []])
    echo(calls[0]!)
    expect(await reply).toBe('ann')
  })

  test('A request waits for no other if none has left in its millisecond, or if that one has its reply.', async () => {
    void ask('ann')
    now += 1
    void ask('bob')
    now -= 1_000 // the clock was set back
    void ask('eve')
    expect([calls.length, waits]).toEqual([3, []])
    echo(calls[2]!)
    await settled()
    void ask('dan')
    expect([calls.length, waits]).toEqual([4, []])
    calls[3]!.fail(new StoreError('unreachable'))
    await settled()
    void ask('fay')
    expect([calls.length, waits]).toEqual([5, []])
  })

  test('An error reaches its request.', async () => {
    const reply = ask('ann')
    calls[0]!.answer([new StoreError('redis-error')])
    expect(await reply).toBe('redis-error')
  })
})

describe('a batch', () => {
  beforeEach(() => void occupy())

  test('Requests of one turn go in one call, in order, and each gets its own reply.', async () => {
    const replies = Promise.all(['ann', 'bob', 'eve'].map((name) => ask(name)))
    await turn()
    expect(calls.map(({ names }) => names)).toEqual([['ann', 'bob', 'eve']])
    echo(calls[0]!)
    expect(await replies).toEqual(['ann', 'bob', 'eve'])
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
      const [{ limits }] = list('ann') as [StoreRequest]
      void ask([{ mode: 'take', limits: [{ ...limits[0]!, penalty }] }])
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
    expect(calls.map(({ names }) => names)).toEqual([['ann', 'bob'], ['long']])
  })
})

describe('a failure of a batch', () => {
  beforeEach(() => void occupy())

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
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    occupy()
  })
  afterEach(() => void vi.useRealTimers())

  test('Each request keeps its own deadline, and the call has the longest one.', async () => {
    const short = ask('short', 60)
    now += 10
    const long = ask('long', 100)
    await turn()
    expect(calls.map(({ names, deadlineMs }) => [names, deadlineMs])).toEqual([
      [['short', 'long'], 100],
    ])
    await vi.advanceTimersByTimeAsync(60)
    expect(await short).toBe('timeout')
    echo(calls[0]!)
    expect(await long).toBe('long')
  })

  test('A request times out at its deadline if its call never ends.', async () => {
    const replies = Promise.all([ask('ann', 40), ask('bob', 50)])
    await turn()
    await vi.advanceTimersByTimeAsync(50)
    expect(await replies).toEqual(['timeout', 'timeout'])
    const next = ask('eve')
    await turn()
    echo(calls[1]!)
    expect(await next).toBe('eve')
  })

  test('A request that times out before its turn makes no call, so nothing is charged.', async () => {
    const reply = ask('ann', 20)
    await vi.advanceTimersByTimeAsync(20)
    expect(await reply).toBe('timeout')
    now += 20
    await turn()
    expect(calls).toEqual([])
  })

  test('A request whose deadline has passed at its turn makes no call, even if its timer is late.', async () => {
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

  test.each([
    [
      [100, 5000, 200, 5000, 99],
      [100, 200, 99],
      [5000, 5000],
    ],
    [[5000, 100, 2500], [5000, 2500], [100]],
  ])(
    'Requests with very different deadlines go in different calls: %j.',
    async (all, ...batches) => {
      for (const deadline of all) void ask(`${deadline}`, deadline)
      await turn()
      expect(calls.map(({ names, deadlineMs }) => [names, deadlineMs])).toEqual(
        batches.map((batch) => [batch.map(String), Math.max(...batch)]),
      )
    },
  )
})

describe('a killed request', () => {
  beforeEach(() => void occupy())

  test('If the request that opened a batch is killed, another request of the batch sends it.', async () => {
    void ask('gone')
    const replies = Promise.all([ask('ann'), ask('bob')])
    kill()
    await lapse()
    expect(calls.map(({ names }) => names)).toEqual([['gone', 'ann', 'bob']])
    expect(background).toHaveLength(2)
    echo(calls[0]!)
    expect(await replies).toEqual(['ann', 'bob'])
  })

  test('A request waits 50 ms for the one that opened its batch, and at most half of its deadline.', () => {
    for (const deadlineMs of [60, 120, 100, 80, 30]) void ask('ann', deadlineMs)
    expect(waits.map(({ ms }) => ms)).toEqual([1, 50, 50, 40, 15])
  })

  test('A later request sends a batch whose request was killed, and does not wait for it.', async () => {
    void ask('gone')
    kill()
    now += 50
    const reply = ask('ann')
    await turn()
    expect(calls.map(({ names }) => names)).toEqual([['gone'], ['ann']])
    echo(calls[1]!)
    expect(await reply).toBe('ann')
  })

  test('The list of a killed request is not sent after its deadline.', async () => {
    void ask('gone', 60_000)
    kill()
    now += 60_000
    void ask('ann')
    await turn()
    expect(calls.map(({ names }) => names)).toEqual([['ann']])
  })

  test('Killed requests with more lists than fit in a batch delay no other request.', async () => {
    for (let index = 0; index < 100; index++) void ask('gone')
    waits = []
    now += 50
    const reply = ask('ann')
    await turn()
    const call = calls.find(({ names }) => names.includes('ann'))!
    expect([calls.length, call.names]).toEqual([5, ['ann']])
    echo(call)
    expect(await reply).toBe('ann')
  })
})

test('No list is sent twice, and every request that is not killed gets its own reply.', async () => {
  const event = fc.record({
    what: fc.constantFrom('ask', 'ask', 'ask', 'wait', 'wait', 'kill', 'answer', 'pass'),
    which: fc.nat(20),
    deadlineMs: fc.constantFrom(300_000, 500_000, 5_000_000),
  })
  let count = 0
  await fc.assert(
    fc.asyncProperty(fc.array(event, { maxLength: 120 }), async (events) => {
      waits = []
      const answered = new Set<Call>()
      calls = []
      const nameOf = new Map<object, string>()
      const expected = new Map<string, Promise<unknown>>()
      const answer = (call: Call) => {
        answered.add(call)
        echo(call)
      }
      for (const { what, which, deadlineMs } of events) {
        const wait = waits[which % waits.length]
        if (what === 'ask') {
          const name = `${count++}`
          const { length } = waits
          expected.set(name, ask(name, deadlineMs))
          if (waits.length > length) nameOf.set(waits.at(-1)!, name)
        } else if (what === 'wait' && wait) {
          const before = new Set(waits)
          await end([wait])
          for (const one of waits) if (!before.has(one)) nameOf.set(one, nameOf.get(wait)!)
        } else if (what === 'kill' && wait) {
          expected.delete(nameOf.get(wait)!)
          kill(waits.indexOf(wait))
        } else if (what === 'answer' && calls[which]) answer(calls[which])
        else if (what === 'pass') now += which
        await settled()
      }
      while (waits.length > 0) await end(waits)
      for (const call of calls) answer(call)
      const sent = calls.flatMap(({ names }) => names)
      expect(new Set(sent).size).toBe(sent.length)
      expect(await Promise.all(expected.values())).toEqual([...expected.keys()])
    }),
    { numRuns: isLong ? 200 : 50 },
  )
})

describe('a request in whose millisecond another one has left', () => {
  beforeEach(() => {
    occupy()
    void ask('eve')
  })

  test('It waits for the end of the millisecond, and leaves with the requests that have joined it.', async () => {
    expect(waits.map(({ ms }) => ms)).toEqual([1])
    void ask('dan')
    await end(opening())
    expect(calls.map(({ names }) => names)).toEqual([['eve', 'dan']])
  })

  test('Alone, it waits for the end of one more.', async () => {
    await end(opening())
    expect([calls.length, waits.map(({ ms }) => ms)]).toEqual([0, [1]])
    await end(opening())
    expect([calls.map(({ names }) => names), waits]).toEqual([[['eve']], []])
  })

  test('Requests of later milliseconds join it while it waits.', async () => {
    now += 1
    void ask('dan')
    await end(opening())
    expect(calls.map(({ names }) => names)).toEqual([['eve', 'dan']])
  })

  test('A batch leaves in a millisecond too, so a request of that one waits.', async () => {
    await turn()
    void ask('dan')
    expect([calls.length, waits.map(({ ms }) => ms)]).toEqual([1, [1]])
  })
})

test('A request without waitUntil, with a given time or with an idempotency key joins no batch.', async () => {
  const idempotency: Idempotency = { key: 'k', fingerprint: 'f', forMs: 1000 }
  const all: StoreOptions[] = [{ deadlineMs: 5 }, { waitUntil, idempotency }, { waitUntil, now: 7 }]
  const decide = vi.fn(async () => [replyTo('direct')])
  decide.mockReturnValueOnce(new Promise(() => {})) // a call in flight
  const batched = connect(storeBy(decide), { later: () => expect.unreachable() })
  void batched.decide(list('ann'), { waitUntil })
  for (const options of all) await batched.decide(list('ann'), options)
  await batched.decide(list('ann'))
  const expected = [{ waitUntil }, ...all, {}]
  expect(decide.mock.calls).toEqual(expected.map((options) => [[list('ann')], options]))
  expect(background).toEqual([])
})

test.each([
  [6500, 1],
  [6501, 0],
])(
  'A request that has ended gets no answer (%i ms after its call: %i answers).',
  async (ms, count) => {
    const batched = connect(inner, {
      clock: () => now,
      later: (ms, end) => void waits.push({ ms, end }),
    })
    void batched.decide(list('early'), { deadlineMs: 1_000_000, waitUntil })
    const answered = vi.fn()
    void batched.decide(list('ann'), { deadlineMs: 1000, waitUntil }).then(answered)
    await turn()
    now += ms
    echo(calls[1]!)
    await settled()
    expect(answered).toHaveBeenCalledTimes(count)
  },
)

test('A decideEach call without another call in flight passes through unchanged.', async () => {
  const replies = store.decideEach([list('ann'), list('bob')], { deadlineMs: 7, waitUntil })
  expect(calls.map(({ names, deadlineMs }) => [names, deadlineMs])).toEqual([[['ann', 'bob'], 7]])
  echo(calls[0]!)
  expect(await replies).toEqual([replyTo('ann'), replyTo('bob')])
})

test('The lists of a decideEach call stay together in a batch with other requests, and each gets its own reply.', async () => {
  const deadlineMs = 60_000
  const first = ask('ann')
  const others = [
    ask('bob'),
    store.decideEach([list('cid'), list('dot')], { deadlineMs, waitUntil }),
    ask('eve'),
    store.decideEach([list('fay', 20), list('gus', 20)], { deadlineMs, waitUntil }), // too many limits for the batch
  ]
  await turn()
  expect(calls.map(({ names }) => names)).toEqual([
    ['ann'],
    ['bob', 'cid', 'dot', 'eve'],
    ['fay', 'gus'],
  ])
  calls[1]!.answer([replyTo('bob'), replyTo('cid'), new StoreError('redis-error'), replyTo('eve')])
  for (const call of [calls[0]!, calls[2]!]) echo(call)
  expect(await first).toBe('ann')
  expect(await Promise.all(others)).toEqual([
    'bob',
    [replyTo('cid'), new StoreError('redis-error')],
    'eve',
    [replyTo('fay'), replyTo('gus')],
  ])
})
