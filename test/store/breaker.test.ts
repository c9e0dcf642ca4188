import { beforeEach, describe, expect, test } from 'vitest'
import { StoreError, type StoreErrorCode } from '../../src/errors.ts'
import { withBreaker } from '../../src/store/breaker.ts'
import type { Store, StoreReply } from '../../src/store/store.ts'

const reply: StoreReply = { now: 0, requests: [] }
let now: number
let asked: number
let events: string[]
/** What the store underneath does next. */
let behaviour: () => Promise<StoreReply>
let behaviourOfEach: (count: number) => Promise<(StoreReply | StoreError)[]>
let store: Store
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
})
