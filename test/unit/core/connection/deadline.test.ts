import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { StoreError } from '../../../../src/core/base/errors.ts'
import { connect } from '../../../../src/core/connection/connection.ts'
import { type Timeout, withDeadline } from '../../../../src/core/connection/deadline.ts'
import {
  type Store,
  type StoreOptions,
  type StoreReply,
  storeBy,
} from '../../../../src/core/connection/store.ts'

const reply: StoreReply = { decidedAt: 1, states: [] }
const failed = (code: StoreError['code']) => new StoreError(code)

/** A store that replies after `ms`. */
function slow(ms: number, answer: StoreReply | StoreError = reply) {
  const seen: (StoreOptions | undefined)[] = []
  const store = storeBy(async (lists, options) => {
    seen.push(options)
    await new Promise((resolve) => setTimeout(resolve, ms))
    return lists.map(() => answer)
  })
  return { store, seen }
}

const errorOf = (deciding: Promise<unknown>) =>
  deciding.then(
    () => undefined,
    (error) => error as Timeout,
  )

describe('a store with a deadline', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  test('A reply or an error in time reaches the caller.', async () => {
    const deciding = withDeadline(slow(299).store).decide([])
    await vi.advanceTimersByTimeAsync(299)
    expect(await deciding).toBe(reply)
    const failing = errorOf(withDeadline(slow(10, failed('redis-error')).store).decide([]))
    await vi.advanceTimersByTimeAsync(10)
    expect((await failing)!.code).toBe('redis-error')
    expect(vi.getTimerCount()).toBe(0)
  })

  test('The caller gets a timeout at the deadline, while the call runs on.', async () => {
    const { store, seen } = slow(2000)
    const failing = errorOf(withDeadline(store).decide([], { deadlineMs: 100 }))
    await vi.advanceTimersByTimeAsync(100)
    const error = await failing
    expect(error!.code).toBe('timeout')
    expect(seen).toMatchObject([{ deadlineMs: 100 }])
    await vi.advanceTimersByTimeAsync(1900)
    expect(await error!.late).toBe(reply)
  })

  test('The late reply of a timeout is the error of the call, or a timeout if the call never ends.', async () => {
    const failing = errorOf(withDeadline(slow(500, failed('unreachable')).store).decide([]))
    const hanging = errorOf(withDeadline(slow(60_000).store).decide([]))
    await vi.advanceTimersByTimeAsync(10_000)
    expect(await (await failing)!.late).toMatchObject({ code: 'unreachable' })
    expect(await (await hanging)!.late).toMatchObject({ code: 'timeout' })
  })

  /** A store that replies after `ms`, and that has a task after `taskMs`. */
  const tasked = (ms: number, taskMs: number, task: () => void): Store => {
    const inner = slow(ms).store
    return storeBy((lists, options) => {
      options.deadline!.at(taskMs, task)
      return inner.decideEach(lists, options)
    })
  }

  test.each([
    [20, [20]],
    [130, [130]],
    [140, []],
  ])(
    'The task of an inner layer runs at its time, after %d ms, unless the call has ended.',
    async (ms, expected) => {
      const ran: number[] = []
      const start = Date.now()
      const store = withDeadline(tasked(131, ms, () => ran.push(Date.now() - start)))
      const deciding = store.decide([], { deadlineMs: 150 })
      await vi.advanceTimersByTimeAsync(150)
      await expect(deciding).resolves.toBe(reply)
      expect(ran).toEqual(expected)
      expect(vi.getTimerCount()).toBe(0)
    },
  )

  test.each([
    [100, 20, [120]],
    [100, 60, [150]],
    [160, 20, []],
  ])(
    'A layer that takes %i ms before it sets a task after %i ms has its task then, at the latest at the deadline.',
    async (ms, taskMs, expected) => {
      const ran: number[] = []
      const start = Date.now()
      const store = storeBy(async (_, options) => {
        await new Promise((resolve) => setTimeout(resolve, ms))
        options.deadline!.at(taskMs, () => ran.push(Date.now() - start))
        return new Promise(() => {})
      })
      const failing = errorOf(withDeadline(store).decide([], { deadlineMs: 150 }))
      await vi.advanceTimersByTimeAsync(400)
      expect(await failing).toMatchObject({ code: 'timeout' })
      expect(ran).toEqual(expected)
    },
  )

  test('A task at the deadline runs before the caller gets its timeout.', async () => {
    const task = vi.fn()
    const deciding = withDeadline(tasked(60_000, 150, task)).decide([], { deadlineMs: 150 })
    const failing = deciding.catch(() => expect(task).toHaveBeenCalledOnce())
    await vi.advanceTimersByTimeAsync(150)
    await failing
    expect(task).toHaveBeenCalledOnce()
  })

  test('A late task neither shortens nor prolongs the wait of the caller.', async () => {
    const busy = () => vi.setSystemTime(Date.now() + 150) // the isolate is busy
    const decide = (ms: number) =>
      withDeadline(tasked(ms, 20, busy)).decide([], { deadlineMs: 300 })
    const deciding = decide(140)
    await vi.advanceTimersByTimeAsync(140)
    await expect(deciding).resolves.toBe(reply)
    const failed = vi.fn()
    decide(60_000).catch(failed)
    await vi.advanceTimersByTimeAsync(150)
    expect(failed).toHaveBeenCalledOnce()
  })

  test.each([
    ['whose task', 20, 0],
    ['whose layer', 20, 30],
  ])(
    'A call %s ends after its deadline starts no timer with a negative delay.',
    async (_, taskMs, layerMs) => {
      const delays: number[] = []
      const start = setTimeout
      // A spy would be taken away after the fake timers, and bring them back for the files after this one.
      globalThis.setTimeout = ((task: () => void, ms: number) => {
        delays.push(ms)
        return start(task, ms)
      }) as typeof setTimeout
      const busy = () => vi.setSystemTime(Date.now() + 1_000) // the isolate is busy
      const store = storeBy(async (_, options) => {
        if (layerMs > 0) await new Promise((resolve) => setTimeout(resolve, layerMs))
        if (layerMs > 0) busy()
        options.deadline!.at(taskMs, busy)
        return new Promise(() => {})
      })
      const failing = errorOf(withDeadline(store).decide([], { deadlineMs: 150 }))
      await vi.advanceTimersByTimeAsync(3_000)
      expect(await failing).toMatchObject({ code: 'timeout' })
      expect(Math.min(...delays)).toBeGreaterThanOrEqual(0)
    },
  )

  test('The isolate stays alive until the late reply arrives.', async () => {
    const work: Promise<unknown>[] = []
    const failing = errorOf(
      withDeadline(slow(900).store).decide([], { waitUntil: (promise) => void work.push(promise) }),
    )
    await vi.advanceTimersByTimeAsync(300)
    await failing
    expect(work).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(600)
    expect(await work[0]).toEqual([reply])
  })

  test('Each list of a timed out call has its own late reply.', async () => {
    const store = storeBy(async () => {
      await new Promise((resolve) => setTimeout(resolve, 500))
      return [{ decidedAt: 1, states: [] }, failed('bad-reply')]
    })
    const deciding = withDeadline(store).decideEach([[], []], {})
    await vi.advanceTimersByTimeAsync(300)
    const errors = (await deciding) as Timeout[]
    expect(errors.map(({ code }) => code)).toEqual(['timeout', 'timeout'])
    await vi.advanceTimersByTimeAsync(200)
    expect(await errors[0]!.late).toMatchObject({ decidedAt: 1 })
    expect(await errors[1]!.late).toMatchObject({ code: 'bad-reply' })
  })

  test('A deadline timer that fires late waits once more for the reply, because the isolate is busy.', async () => {
    let now = 0
    const { store } = slow(350)
    const deciding = withDeadline(store, () => now).decide([])
    deciding.catch(() => {})
    now = 500 // by the clock the timer fires 200 ms late
    await vi.advanceTimersByTimeAsync(300)
    await vi.advanceTimersByTimeAsync(50)
    await expect(deciding).resolves.toBe(reply)
  })

  test('A caller waits at most twice its deadline, however late its timer fires.', async () => {
    let now = 0
    const failed = vi.fn()
    withDeadline(slow(60_000).store, () => now)
      .decide([])
      .catch(failed)
    now = 10_000
    await vi.advanceTimersByTimeAsync(600)
    expect(failed.mock.calls).toMatchObject([[{ code: 'timeout' }]])
  })
})

describe('the breaker under a deadline', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())
  const fail = async (store: Store, times: number, waitMs = 300) => {
    const failing = Array.from({ length: times }, () => errorOf(store.decide([])))
    await vi.advanceTimersByTimeAsync(waitMs)
    return Promise.all(failing)
  }

  test('Five calls without a reply in time open the circuit before any of them has ended.', async () => {
    const opened = vi.fn()
    const store = withDeadline(connect(slow(60_000).store, { onOpen: opened }))
    await fail(store, 4)
    expect(opened).not.toHaveBeenCalled()
    await fail(store, 1)
    expect(opened).toHaveBeenCalledWith('timeout')
    expect((await fail(store, 1))[0]!.code).toBe('circuit-open')
  })

  test('Timeouts whose timers fire late do not open the circuit, because the store may be healthy.', async () => {
    const opened = vi.fn()
    let lagMs = 0
    const clock = () => Date.now() + lagMs
    const guarded = connect(slow(400).store, { onOpen: opened, clock })
    const store = withDeadline(guarded, clock)
    for (let round = 0; round < 5; round++) {
      const failing = Array.from({ length: 10 }, () => errorOf(store.decide([])))
      lagMs += 100 // the isolate is busy for 100 ms that the fake timers do not see
      await vi.advanceTimersByTimeAsync(1000)
      await Promise.all(failing)
    }
    expect(opened).not.toHaveBeenCalled()
  })

  test('A call that fails after its deadline is one failure.', async () => {
    const opened = vi.fn()
    const failing = slow(500, failed('unreachable')).store
    const store = withDeadline(connect(failing, { onOpen: opened }))
    await fail(store, 4, 1000)
    expect(opened).not.toHaveBeenCalled()
    await fail(store, 1, 1000)
    expect(opened).toHaveBeenCalledOnce()
  })

  test('A reply after the deadline lets calls pass again, and the next one in time closes the circuit.', async () => {
    const [opened, closed] = [vi.fn(), vi.fn()]
    const { store: inner, seen } = slow(1000)
    const store = withDeadline(connect(inner, { onOpen: opened, onClose: closed }))
    await fail(store, 5)
    expect(opened).toHaveBeenCalledOnce()
    await fail(store, 1)
    expect(seen).toHaveLength(5)
    await vi.advanceTimersByTimeAsync(700)
    const deciding = store.decide([], { deadlineMs: 2000 })
    expect([seen.length, closed.mock.calls.length]).toEqual([6, 0])
    await vi.advanceTimersByTimeAsync(1000)
    expect([await deciding, closed.mock.calls.length]).toEqual([reply, 1])
  })

  test('A slow call with many limits does not open the circuit.', async () => {
    const opened = vi.fn()
    const store = withDeadline(connect(slow(60_000).store, { onOpen: opened }))
    const row = { subject: 's', cost: 1 } as never
    const lists = Array.from({ length: 100 }, () => [
      { mode: 'take' as const, limits: [row, row, row] },
    ])
    for (let call = 0; call < 6; call++) {
      const deciding = store.decideEach(lists, {})
      await vi.advanceTimersByTimeAsync(300)
      expect((await deciding).every((one) => one instanceof StoreError)).toBe(true)
    }
    expect(opened).not.toHaveBeenCalled()
  })
})

test('With real timers, a reply that arrives while the isolate is busy is read before the deadline applies.', async () => {
  const store = withDeadline(
    storeBy(async () => {
      await sleep(50)
      return [reply]
    }),
  )
  const deciding = store.decide([], { deadlineMs: 100 })
  const until = performance.now() + 250
  while (performance.now() < until); // the deadline timer fires 150 ms late
  expect(await deciding).toBe(reply)
})
