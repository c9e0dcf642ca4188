/** Who goes on when units come back, and what a repeated call makes of a stored reply: single cases at a time of their own. */
import { expect, test } from 'vitest'
import { conclude } from '../../../../src/core/decide/conclude.ts'
import type { Pending } from '../../../../src/core/decide/question.ts'
import { createRoom, type GuestAnswer } from '../../../../src/features/turns/room.ts'
import { createWaiting } from '../../../../src/features/turns/wait.ts'
import { heldWorld, type Policies } from '../../../support/held-requests.ts'
import { useInstantDigests } from '../../../support/instant-digests.ts'
import { inVirtualTime, type VirtualTime } from '../../../support/virtual-time.ts'

useInstantDigests()

const line = (change: object) => ({ name: 'line', key: 'global', ...change }) as Policies[0]

test('A call whose repetition has asked for it again waits on: the turn in the stored reply is an old one.', () =>
  inVirtualTime(async (time) => {
    const { decide } = heldWorld(time).isolate([
      line({ algorithm: 'token-bucket', limit: 1, window: '1s', wait: '1200ms' }),
    ])
    const ask = { idempotency: { key: 'one', fingerprint: 'f', forMs: 60_000 } }
    await decide()
    const first = decide({}, ask)
    await time.pass(100)
    const repeated = decide({}, ask)
    await time.pass(5_000)
    expect(await Promise.all([first, repeated])).toMatchObject([
      { allowed: true },
      { allowed: true },
    ])
  }))

test('A refund wakes the first request that waits for the units.', () =>
  inVirtualTime(async (time) => {
    const policy = { algorithm: 'fixed-window', limit: 1, window: '20s', countOnly: 200 }
    const { check } = heldWorld(time).isolate([line({ ...policy, wait: '60s' })])
    const { result } = await check()
    const ended: string[] = []
    for (const name of ['first', 'second']) {
      void check().then(({ allowed }) => ended.push(`${name}: ${allowed}`))
      await time.pass(10)
    }
    result.settle({ status: 404, headers: new Headers() })
    await time.pass(1_000)
    expect(ended).toEqual(['first: true'])
  }))

test('When a request leaves the line, each of those behind it passes one turn earlier.', () =>
  inVirtualTime(async (time) => {
    const policy = { algorithm: 'fixed-window', limit: 1, window: '1s', wait: '10s' }
    const { check } = heldWorld(time).isolate([line(policy)])
    const startedAt = time.now()
    const passed: number[] = []
    for (const leaves of [undefined, 500, undefined, undefined, undefined]) {
      const closed = leaves === undefined ? undefined : time.sleep(leaves)
      void check({}, closed).then(
        ({ allowed, endedAt }) => allowed && passed.push(Math.floor((endedAt - startedAt) / 1_000)),
      )
      await time.pass(10)
    }
    await time.pass(10_000)
    expect(passed).toEqual([0, 1, 2, 3])
  }))

test('When a request leaves the line, its isolate forgets the refusals of those for whom the line was too long.', () =>
  inVirtualTime(async (time) => {
    const policy = { algorithm: 'token-bucket', limit: 1, window: '1s', wait: '1s' }
    const { check, decide } = heldWorld(time).isolate([line(policy)])
    await check()
    const idempotency = { key: 'one', fingerprint: 'f', forMs: 60_000 }
    const leaving = [
      () => check({}, time.sleep(20)),
      () => decide({}, { closed: time.sleep(20), idempotency }),
    ]
    for (const leave of leaving) {
      const left = leave()
      await time.pass(10)
      expect((await check()).allowed).toBe(false)
      await time.pass(20)
      expect((await left).allowed).toBe(false)
      const next = check()
      await time.pass(5_000)
      expect((await next).allowed).toBe(true)
      await check()
    }
  }))

test('A refusal because of the line is remembered until units come back, and not until the line may have ended.', () =>
  inVirtualTime(async (time) => {
    const { check } = heldWorld(time).isolate([
      line({
        ...{ algorithm: 'fixed-window', limit: 2, window: '1s', wait: '100ms' },
        ...{ plan: 'header:x-plan', limits: { small: 2, large: 4 } },
        reserve: [{ match: { header: { 'x-reserves': 'yes' } }, share: 0.5 }],
      }),
    ])
    const [small, large] = [{ 'x-plan': 'small' }, { 'x-plan': 'large' }]
    const reserves = { ...small, 'x-reserves': 'yes' }
    for (const _ of [1, 2]) expect((await check(small)).allowed).toBe(true)
    await time.pass(950)
    const waiting = [small, large, large, large].map((headers) => check(headers))
    await time.pass(10)
    expect((await check(reserves)).decision.retryAfterMs).toBeGreaterThan(2_000)
    await time.pass(1_100)
    for (const one of waiting) expect((await one).allowed).toBe(true)
    expect((await check(reserves)).allowed).toBe(true)
  }))

test('Units that come back wake the first request of a line, and no other.', () =>
  inVirtualTime(async (time) => {
    const room = createRoom(10)
    const refused: GuestAnswer = {
      outcome: {
        decision: { allowed: false, reason: 'limited', retryAfterMs: 10_000, limits: [] },
      },
      ticket: 'a',
      until: time.now() + 10_000,
    }
    const woken: string[] = []
    for (const name of ['first', 'second']) {
      const guest = room.enter({ mostMs: 60_000, subjects: ['a'], question: () => undefined })
      void guest.wait(refused, undefined).then(() => woken.push(name))
    }
    await time.pass(10)
    room.wake(['a'])
    await time.pass(10)
    expect(woken).toEqual(['first'])
  }))

/** Requests of one isolate and of equal questions, for units that others give back. */
function units(time: VirtualTime) {
  const room = createRoom(100)
  const waiting = createWaiting(room)
  const size = { limit: 10, burst: 10, algorithm: 'fixed-window', windowMs: 10_000, wait: 20_000 }
  const terms = { name: 'p', tag: 't', mode: 'enforce', ...size }
  const limit = { subject: 's', cost: 1, partitionKey: [], terms }
  const pending = {
    ...{ limits: [limit], requests: [{ mode: 'take', limits: [limit] }], mode: 'take' },
    ...{ slot: undefined, settles: false },
  } as unknown as Pending
  const startedAt = time.now()
  const line = {
    free: 0,
    passed: [] as [name: string, ms: number][],
    /** @param turnMs when its turn comes, ms after the start */
    async ask(name: string, turnMs: number, firstMs = 5) {
      let latencyMs = firstMs
      const again = async () => {
        await time.sleep(latencyMs)
        latencyMs = 5
        const allowed = line.free > 0
        if (allowed) line.free -= 1
        const left = startedAt + turnMs - time.now()
        const waits = { resetAfterMs: left, nextAfterMs: left, retryAfterMs: allowed ? 0 : left }
        const reply = { decidedAt: time.now(), states: [[{ allowed, remaining: 0, ...waits }]] }
        return { reply, outcome: conclude(pending, reply) }
      }
      const waiter = waiting.enter(pending, {} as never, {}, 0)!
      await waiter.wait(await again(), again)
      line.passed.push([name, time.now() - startedAt])
    },
    wake: () => room.wake(['s']),
  }
  return line
}

test('A request that passes before the turn which it got by an exchange lets the next one ask.', () =>
  inVirtualTime(async (time) => {
    const line = units(time)
    void line.ask('first', 3_000)
    await time.pass(30)
    line.free = 1
    void line.ask('second', 4_000)
    await time.pass(30)
    void line.ask('third', 5_000)
    await time.pass(100)
    line.free = 2
    line.wake()
    await time.pass(1_000)
    expect(line.passed.map(([name]) => name)).toEqual(['first', 'second', 'third'])
  }))

test('A request that has given its admission to an earlier one is woken by it at once.', () =>
  inVirtualTime(async (time) => {
    const line = units(time)
    void line.ask('first', 3_000)
    await time.pass(20)
    void line.ask('second', 4_000, 80)
    void line.ask('third', 5_000)
    await time.pass(40)
    line.free = 3
    await time.pass(1_000)
    expect(line.passed.map(([name]) => name)).toEqual(['first', 'second', 'third'])
  }))
