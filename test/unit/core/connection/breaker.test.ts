import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { StoreError, type StoreErrorCode } from '../../../../src/core/base/errors.ts'
import { connect } from '../../../../src/core/connection/connection.ts'
import type { StoreReply } from '../../../../src/core/connection/store.ts'
import { storeBy } from '../../../../src/core/connection/store.ts'
import { storeOf } from '../../../support/store-of.ts'

const reply: StoreReply = { decidedAt: 0, states: [] }
let now: number
let calls: number
let events: string[]
/** The next result of the inner store. */
let behaviour: () => Promise<StoreReply>
let behaviourOfEach: (count: number) => Promise<(StoreReply | StoreError)[]>
let store: ReturnType<typeof connect>
let decide: () => Promise<StoreReply>

beforeEach(() => {
  now = 1_000_000
  calls = 0
  events = []
  behaviour = async () => reply
  behaviourOfEach = async (count) => Array<StoreReply>(count).fill(reply)
  store = connect(
    storeBy(async (lists) => {
      calls += 1
      return lists.length === 1 ? [await behaviour()] : behaviourOfEach(lists.length)
    }),
    {
      clock: () => now,
      onOpen: (code) => events.push(`opened ${code}`),
      onClose: (openMs) => events.push(`closed after ${openMs}`),
    },
  )
  decide = () => store.decide([])
})

const failing = (code: StoreErrorCode) => async () => {
  throw new StoreError(code)
}
const code = async () =>
  decide().then(
    () => 'ok',
    (error: StoreError) => error.code,
  )

const isOpen = ({ health }: Pick<typeof store, 'health'>) => health().openSince !== undefined

async function open(by: StoreErrorCode = 'timeout') {
  behaviour = failing(by)
  while (events.length === 0) await code()
  calls = 0
}

describe('the breaker', () => {
  test('Five consecutive failures open the circuit, and then no call reaches the store.', async () => {
    behaviour = failing('timeout')
    const codes = []
    for (let i = 0; i < 8; i++) codes.push(await code())
    expect(codes).toEqual([...Array(5).fill('timeout'), ...Array(3).fill('circuit-open')])
    expect([calls, events]).toEqual([5, ['opened timeout']])
  })

  test('A success resets the count of failures.', async () => {
    for (let i = 0; i < 20; i++) {
      behaviour = i % 5 === 4 ? async () => reply : failing('timeout')
      await code()
    }
    expect([calls, events]).toEqual([20, []])
  })

  test('The circuit is open since its first opening until a call has succeeded, also while a call is tried.', async () => {
    expect(store.health()).toEqual({})
    await decide()
    const answeredAt = now
    expect(store.health()).toEqual({ answeredAt })
    now += 5_000
    await open()
    const opened = { answeredAt, openSince: now, failure: 'timeout' }
    expect(store.health()).toEqual(opened)
    now += 1_000
    expect(store.health()).toEqual(opened) // the next call is a trial call
    let answer = (_: StoreReply) => {}
    behaviour = () => new Promise((resolve) => (answer = resolve))
    const trying = decide()
    expect(store.health()).toEqual(opened)
    answer(reply)
    await trying
    expect(store.health()).toEqual({ answeredAt: now })
  })

  test('After one second a single trial call reaches the store.', async () => {
    await open()
    now += 999
    expect(await code()).toBe('circuit-open')
    now += 1
    const answer = Promise.withResolvers<StoreReply>()
    behaviour = () => answer.promise
    const probe = code()
    expect(await Promise.all([code(), code(), code()])).toEqual(Array(3).fill('circuit-open'))
    expect(calls).toBe(1)
    answer.resolve(reply)
    expect(await probe).toBe('ok')
    expect(await code()).toBe('ok')
    expect(events).toEqual(['opened timeout', 'closed after 1000'])
  })

  test('A failed trial call keeps the circuit open for another second.', async () => {
    await open()
    now += 1000
    const trial = store.decide([], { deadlineMs: 5000 }).catch((error) => error.code)
    expect([await trial, await code()]).toEqual(['timeout', 'circuit-open'])
    now += 999
    expect(await code()).toBe('circuit-open')
    now += 1
    behaviour = async () => reply
    expect(await code()).toBe('ok')
    expect(events).toEqual(['opened timeout', 'closed after 2000'])
  })

  test('No other call reaches the store while a trial call with a long deadline is in flight.', async () => {
    await open()
    now += 1000
    behaviour = () => new Promise(() => {})
    void store.decide([], { deadlineMs: 5000 })
    behaviour = async () => reply
    now += 4999
    expect(await code()).toBe('circuit-open')
    expect(calls).toBe(1)
    now += 1
    expect(await code()).toBe('ok')
  })

  test('Another trial call is possible if the first one never ends.', async () => {
    await open()
    now += 1000
    behaviour = () => new Promise(() => {})
    void code()
    now += 1000
    behaviour = async () => reply
    expect(await code()).toBe('ok')
  })

  test('A clock that is set back does not keep the circuit open.', async () => {
    await open()
    now -= 3_600_000
    expect([await code(), await code()]).toEqual(['timeout', 'circuit-open'])
    now += 1000
    behaviour = () => new Promise(() => {})
    void code()
    now -= 3_600_000
    behaviour = async () => reply
    expect(await code()).toBe('ok')
  })

  test.each([
    ['over-quota', 60_000],
    ['unauthorized', 10_000],
  ] as const)('One %s error opens the circuit for %d ms.', async (by, holdMs) => {
    behaviour = failing(by)
    expect([await code(), await code()]).toEqual([by, 'circuit-open'])
    now += holdMs - 1
    expect(await code()).toBe('circuit-open')
    now += 1
    expect(await code()).toBe(by)
  })

  test('A later failure does not shorten the time for which an exceeded plan opens the circuit.', async () => {
    const slow = Promise.withResolvers<StoreReply>()
    behaviour = () => slow.promise
    const early = code()
    await open('over-quota')
    slow.reject(new StoreError('timeout'))
    expect(await early).toBe('timeout')
    now += 59_999
    expect(await code()).toBe('circuit-open')
  })

  test('A reply to an earlier call closes the circuit.', async () => {
    const slow = Promise.withResolvers<StoreReply>()
    behaviour = () => slow.promise
    const early = code()
    await open()
    slow.resolve(reply)
    expect(await early).toBe('ok')
    behaviour = async () => reply
    expect(await code()).toBe('ok')
  })

  test.each([
    new StoreError('idempotency-conflict'),
    new StoreError('redis-error', 'ERR sluice: row 1: unexpected cost'),
    new StoreError('redis-error', 'WRONGTYPE'), // of one client's key
  ])('The breaker counts a mistake of the caller as an answer: %s.', async (mistake) => {
    behaviour = async () => {
      throw mistake
    }
    for (let i = 0; i < 20; i++) expect(await code()).toBe(mistake.code)
    expect(events).toEqual([])
    await open()
    now += 1000
    behaviour = async () => {
      throw mistake
    }
    expect([await code(), await code()]).toEqual([mistake.code, mistake.code])
    expect(events).toEqual(['opened timeout', 'closed after 1000'])
  })

  test('The breaker counts an error of Redis as a failure.', async () => {
    behaviour = async () => {
      throw new StoreError('redis-error', 'OOM')
    }
    for (let i = 0; i < 5; i++) await code()
    expect(events).toEqual(['opened redis-error'])
  })
})

describe('the breaker with many lists', () => {
  const lists = [[], [], []]
  const each = async () =>
    (await store.decideEach(lists, {})).map((one) => (one instanceof StoreError ? one.code : 'ok'))
  const failure = new StoreError('timeout')
  const mistake = new StoreError('idempotency-conflict')
  const answers = (...of: (StoreReply | StoreError)[]) => {
    behaviourOfEach = async () => of
  }

  test('Five calls whose lists all fail open the circuit, and then no call reaches the store.', async () => {
    answers(failure, failure, failure)
    const results = []
    for (let i = 0; i < 6; i++) results.push(await each())
    expect(results).toEqual([
      ...Array(5).fill(Array(3).fill('timeout')),
      Array(3).fill('circuit-open'),
    ])
    expect([calls, events, await code()]).toEqual([5, ['opened timeout'], 'circuit-open'])
  })

  test.each<[claim: string, answer: StoreReply | StoreError]>([
    ['a reply', reply],
    ['an error for a mistake of the caller', mistake],
  ])('The circuit closes if one list of a call gets %s.', async (_, answer) => {
    answers(failure, failure, answer)
    for (let i = 0; i < 20; i++) await each()
    expect([calls, events]).toEqual([20, []])
    await open()
    expect(await each()).toEqual(Array(3).fill('circuit-open'))
    now += 1000
    await each()
    expect(events).toEqual(['opened timeout', 'closed after 1000'])
  })

  test('A trial call with many lists keeps the circuit open if all of its lists fail.', async () => {
    await open()
    now += 1000
    const answer = Promise.withResolvers<StoreError[]>()
    behaviourOfEach = () => answer.promise
    const probe = each()
    expect([await code(), await each()]).toEqual(['circuit-open', Array(3).fill('circuit-open')])
    answer.resolve([failure, failure, failure])
    expect(await probe).toEqual(Array(3).fill('timeout'))
    expect([calls, await code()]).toEqual([1, 'circuit-open'])
    now += 1000
    behaviour = async () => reply
    expect(await code()).toBe('ok')
  })

  test('A decideEach call without lists makes no call to the store.', async () => {
    expect(await store.decideEach([], {})).toEqual([])
    expect(calls).toBe(0)
  })
})

describe('while the store does not decide', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())
  const DEADLINE = 300

  const ways: [way: string, decides: () => Promise<StoreReply>][] = [
    ['frozen', () => after(DEADLINE + 5_000, new StoreError('timeout'))],
    ['killed', () => after(1, new StoreError('unreachable'))],
    ['slow', () => after(DEADLINE + 80, reply)],
  ]
  const after = async (ms: number, result: StoreReply | StoreError) => {
    await new Promise((resolve) => setTimeout(resolve, ms))
    if (result instanceof StoreError) throw result
    return result
  }

  test.each(
    ways.flatMap(([way, decides]) => [20, 1_400].map((gap) => [way, gap, decides] as const)),
  )(
    'The circuit of a %s store counts as open at each moment from its opening until an answer in time, with a request each %d ms.',
    async (_, gapMs, decides) => {
      const seen: string[] = []
      let decide = decides
      const connection = connect(
        storeOf(() => decide()),
        { onOpen: () => seen.push('opened'), onClose: () => seen.push('closed') },
      )
      const probes: boolean[] = []
      const run = async (ms: number) => {
        for (let at = 0; at < ms; at += 20) {
          if (at % gapMs === 0) void connection.decide([], { deadlineMs: DEADLINE }).catch(() => {})
          await vi.advanceTimersByTimeAsync(20)
          if (seen.length > 0) probes.push(isOpen(connection))
        }
      }
      await run(14_000)
      expect([seen, new Set(probes)]).toEqual([['opened'], new Set([true])])
      expect(probes.length).toBeGreaterThan(300) // five requests open it
      decide = () => after(10, reply)
      await run(7_000)
      expect([seen, isOpen(connection)]).toEqual([['opened', 'closed'], false])
    },
  )

  test('After a late reply each call goes to the store.', async () => {
    let calls = 0
    let ms = DEADLINE + 80
    const decide = () => {
      calls += 1
      return after(ms, reply)
    }
    const connection = connect(storeOf(decide))
    const many = (count: number) => Array.from({ length: count }, () => connection.decide([]))
    void many(5)
    await vi.advanceTimersByTimeAsync(DEADLINE)
    await expect(connection.decide([])).rejects.toThrow('circuit-open')
    await vi.advanceTimersByTimeAsync(80)
    ms = 10
    void many(3)
    expect([calls, isOpen(connection)]).toEqual([8, true])
    await vi.advanceTimersByTimeAsync(10)
    expect(isOpen(connection)).toBe(false)
  })
})
