/** Who goes on when units come back, and what a repeated call makes of a stored reply: single cases at a time of their own. */
import { expect, test } from 'vitest'
import { createRoom, type GuestAnswer } from '../../../../src/features/turns/room.ts'
import { heldWorld, type Policies } from '../../../support/held-requests.ts'
import { useInstantDigests } from '../../../support/instant-digests.ts'
import { inVirtualTime } from '../../../support/virtual-time.ts'

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
    const { check } = heldWorld(time).isolate([line(policy)])
    await check()
    const left = check({}, time.sleep(20))
    await time.pass(10)
    expect((await check()).allowed).toBe(false)
    await time.pass(20)
    expect((await left).allowed).toBe(false)
    const next = check()
    await time.pass(5_000)
    expect((await next).allowed).toBe(true)
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
