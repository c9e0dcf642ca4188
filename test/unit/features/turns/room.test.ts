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
