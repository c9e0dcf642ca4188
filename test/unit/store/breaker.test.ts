import { beforeEach, describe, expect, test } from 'vitest'
import { StoreError, type StoreErrorCode } from '../../../src/base/errors.ts'
import { withBreaker } from '../../../src/store/breaker.ts'
import type { StoreReply } from '../../../src/store/store.ts'

const reply: StoreReply = { decidedAt: 0, states: [] }
let now: number
let asked: number
let events: string[]
/** What the store underneath does next. */
let behaviour: () => Promise<StoreReply>
let behaviourOfEach: (count: number) => Promise<(StoreReply | StoreError)[]>
let store: ReturnType<typeof withBreaker>
let decide: () => Promise<StoreReply>

beforeEach(() => {
  now = 1_000_000
  asked = 0
  events = []
  behaviour = async () => reply
  behaviourOfEach = async (count) => Array<StoreReply>(count).fill(reply)
  store = withBreaker(
    {
      decide() {
        asked += 1
        return behaviour()
      },
      decideEach(lists) {
        asked += 1
        return behaviourOfEach(lists.length)
      },
    },
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

async function open(by: StoreErrorCode = 'timeout') {
  behaviour = failing(by)
  while (events.length === 0) await code()
  asked = 0
}

describe('the breaker', () => {
  test('opens at the fifth failure in a row, and then asks nobody', async () => {
    behaviour = failing('timeout')
    const codes = []
    for (let i = 0; i < 8; i++) codes.push(await code())
    expect(codes).toEqual([...Array(5).fill('timeout'), ...Array(3).fill('circuit-open')])
    expect([asked, events]).toEqual([5, ['opened timeout']])
  })

  test('starts counting anew after a success', async () => {
    for (let i = 0; i < 20; i++) {
      behaviour = i % 5 === 4 ? async () => reply : failing('timeout')
      await code()
    }
    expect([asked, events]).toEqual([20, []])
  })

  test('says that it is open for as long as it refuses calls', async () => {
    expect(store.isOpen()).toBe(false)
    await open()
    expect(store.isOpen()).toBe(true)
    now += 1_000
    expect(store.isOpen()).toBe(false) // the next call tries the store,
    let answer = (_: StoreReply) => {}
    behaviour = () => new Promise((resolve) => (answer = resolve))
    const trying = decide()
    expect(store.isOpen()).toBe(true) // and others fail while it does
    answer(reply)
    await trying
    expect(store.isOpen()).toBe(false)
  })

  test('lets one request try after a second, however many come', async () => {
    await open()
    now += 999
    expect(await code()).toBe('circuit-open')
    now += 1
    const answer = Promise.withResolvers<StoreReply>()
    behaviour = () => answer.promise
    const probe = code()
    expect(await Promise.all([code(), code(), code()])).toEqual(Array(3).fill('circuit-open'))
    expect(asked).toBe(1)
    answer.resolve(reply)
    expect(await probe).toBe('ok')
    expect(await code()).toBe('ok')
    expect(events).toEqual(['opened timeout', 'closed after 1000'])
  })

  test('stays open for another second when the try fails', async () => {
    await open()
    now += 1000
    expect([await code(), await code()]).toEqual(['timeout', 'circuit-open'])
    now += 999
    expect(await code()).toBe('circuit-open')
    now += 1
    behaviour = async () => reply
    expect(await code()).toBe('ok')
    expect(events).toEqual(['opened timeout', 'closed after 2000'])
  })

  test('lets nobody else try while one does, however long its deadline', async () => {
    await open()
    now += 1000
    behaviour = () => new Promise(() => {})
    void store.decide([], { deadlineMs: 5000 })
    now += 4999
    expect(await code()).toBe('circuit-open')
    expect(asked).toBe(1)
    now += 1
    behaviour = async () => reply
    expect(await code()).toBe('ok')
  })

  test('lets another try when the one that tried never came back', async () => {
    await open()
    now += 1000
    behaviour = () => new Promise(() => {})
    void code()
    now += 1000
    behaviour = async () => reply
    expect(await code()).toBe('ok')
  })

  test('is held up by no clock that was set back', async () => {
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
  ] as const)('opens at once on %s, for %d ms', async (by, holdMs) => {
    behaviour = failing(by)
    expect([await code(), await code()]).toEqual([by, 'circuit-open'])
    now += holdMs - 1
    expect(await code()).toBe('circuit-open')
    now += 1
    expect(await code()).toBe(by)
  })

  test('opens at the fifth reply that the database is full, for one second', async () => {
    behaviour = failing('database-full')
    const codes = []
    for (let i = 0; i < 6; i++) codes.push(await code())
    expect(codes).toEqual([...Array(5).fill('database-full'), 'circuit-open'])
    now += 1000
    behaviour = async () => reply
    expect(await code()).toBe('ok')
  })

  test('is closed again by a call that was under way when it opened', async () => {
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
  ])('counts a mistake of the caller as an answer: %s', async (mistake) => {
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

  test('counts an error of Redis as a failure', async () => {
    behaviour = async () => {
      throw new StoreError('redis-error', 'OOM')
    }
    for (let i = 0; i < 5; i++) await code()
    expect(events).toEqual(['opened redis-error'])
  })
})

describe('the breaker, of many lists', () => {
  const lists = [[], [], []]
  const each = async () =>
    (await store.decideEach(lists)).map((one) => (one instanceof StoreError ? one.code : 'ok'))
  const failure = new StoreError('timeout')
  const mistake = new StoreError('idempotency-conflict')
  const answers = (...of: (StoreReply | StoreError)[]) => {
    behaviourOfEach = async () => of
  }

  test('opens at the fifth request of which all have failed, and then asks nobody', async () => {
    answers(failure, failure, failure)
    const told = []
    for (let i = 0; i < 6; i++) told.push(await each())
    expect(told).toEqual([
      ...Array(5).fill(Array(3).fill('timeout')),
      Array(3).fill('circuit-open'),
    ])
    expect([asked, events, await code()]).toEqual([5, ['opened timeout'], 'circuit-open'])
  })

  test.each<[claim: string, answer: StoreReply | StoreError]>([
    ['a reply', reply],
    ['a mistake of the caller', mistake],
  ])('is closed by one that is %s', async (_, answer) => {
    answers(failure, failure, answer)
    for (let i = 0; i < 20; i++) await each()
    expect([asked, events]).toEqual([20, []])
    await open()
    expect(await each()).toEqual(Array(3).fill('circuit-open'))
    now += 1000
    await each()
    expect(events).toEqual(['opened timeout', 'closed after 1000'])
  })

  test('lets one request try, and stays open when all of it fails', async () => {
    await open()
    now += 1000
    const answer = Promise.withResolvers<StoreError[]>()
    behaviourOfEach = () => answer.promise
    const probe = each()
    expect([await code(), await each()]).toEqual(['circuit-open', Array(3).fill('circuit-open')])
    answer.resolve([failure, failure, failure])
    expect(await probe).toEqual(Array(3).fill('timeout'))
    expect([asked, await code()]).toEqual([1, 'circuit-open'])
    now += 1000
    behaviour = async () => reply
    expect(await code()).toBe('ok')
  })

  test('asks nobody for none', async () => {
    expect(await store.decideEach([])).toEqual([])
    expect(asked).toBe(0)
  })
})
