/** Leases of requests with several limits, and of many concurrent calls. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Limit, StoreReply, StoreRequest } from '../../../../src/core/connection/store.ts'
import { Model, type ModelRequest } from '../../../model/model.ts'
import { settled, World } from '../../../support/isolates.ts'
import { property } from '../../../support/law.ts'
import { busyOn, policyOf, take } from '../../../support/leases.ts'
import { isLong } from '../../../support/long.ts'
import { useServer } from '../../../support/server.ts'
import { newSubject } from '../../../support/subjects.ts'

const server = useServer()
const busy = busyOn(server)

const leased = policyOf({ limit: 100_000, burst: 100_000, lease: { max: 10, ttlMs: 10_000 } })
const small: Limit['terms'] = {
  ...leased,
  tag: 'small',
  limit: 1,
  windowMs: 3_600_000,
  lease: undefined,
}
/** The beginning of a minute. */
const start = 1_789_000_020_000

describe('a request with another limit', () => {
  const other = (): Limit => ({ subject: newSubject(), terms: small, cost: 1 })

  test('A refusal by a limit without a lease is not marked as leased, even while units of another limit are held.', async () => {
    const { world, row, held } = await busy(leased, 5)
    const unleased = other()
    const both = () => world.alone(0, [take({ ...row }, { ...unleased })])
    expect((await both()).states[0]!.map(({ allowed }) => allowed)).toEqual([true, true])
    const refused = await both()
    expect(refused.states[0]!.map(({ allowed }) => allowed)).toEqual([true, false])
    expect(await held()).toBe(4)
    expect(refused.leased).toBeUndefined()
  })

  test('A unit that was lent just before the end of a window is not refunded to the next window.', async () => {
    const { world, row } = await busy(leased, 5, start + 55_000)
    world.now = start + 60_000 - 10
    const both = world.ask(0, [take({ ...row }, other())])
    await settled()
    world.now += 20
    await world.drain()
    const reply = (await both) as StoreReply
    const decidedAt = reply.states[0]![0]!.decidedAt ?? reply.decidedAt
    const next = { ...row, cost: 3 }
    await world.evaluate([take(next)])
    const refund: StoreRequest = { mode: 'refund', limits: [row], decidedAt }
    const { states } = await world.evaluate([refund])
    expect(states[0]![0]!.remaining).toBe(leased.limit - 3)
  })
})

describe('requests with several limits from isolates whose clocks differ and jump', () => {
  const lease = { max: 12, ttlMs: 300 }
  const short = { windowMs: 200, limit: 150, lease }
  const fixed: Limit['terms'][] = [
    { ...leased, ...short },
    { ...leased, ...short, tag: 'u', windowMs: 1000, limit: 300 },
    { ...small, tag: 'n', windowMs: 200, limit: 25 },
    { ...leased, ...short, tag: 's' }, // in shadow
  ]
  const sliding: Limit['terms'] = { ...leased, ...short, tag: 'w', algorithm: 'sliding-window' }
  const events = fc.array(
    fc.record({
      what: fc.constantFrom(
        ...Array<'ask'>(10).fill('ask'),
        ...Array<'answer'>(6).fill('answer'),
        ...(['arrive', 'arrive', 'pass', 'pass', 'fail', 'jump'] as const),
      ),
      which: fc.nat(20),
      of: fc.nat(5),
      cost: fc.constantFrom(1, 1, 1, 2, 5, 15),
      ms: fc.oneof(fc.nat(3), fc.nat(60), fc.constant(200)),
    }),
    { maxLength: 400, size: 'max' },
  )

  property(
    'Admitted requests are counted in their fixed window, and a sliding window without leases would admit them at the same times.',
    fc.record({ skews: fc.array(fc.nat(50_000), { minLength: 1, maxLength: 3 }), events }),
    async ({ skews, events }) => {
      const world = new World(server, skews)
      const subject = newSubject()
      const passed: { policy: Limit['terms']; cost: number; at: number }[] = []
      const pending: Promise<void>[] = []
      const [a, b, n, s] = fixed as [typeof sliding, typeof sliding, typeof sliding, typeof sliding]
      const ask = async (
        isolate: number,
        enforced: typeof fixed,
        shadow: boolean,
        cost: number,
      ) => {
        const list: StoreRequest[] = [enforced, ...(shadow ? [[s]] : [])].map(
          (policies, index) => ({
            mode: index === 0 ? 'take' : 'follow',
            limits: policies.map((policy) => ({ subject, terms: policy, cost })),
          }),
        )
        const reply = await world.ask(isolate, list)
        if (typeof reply === 'string') return
        const admits = (index: number) => reply.states[index]!.every(({ allowed }) => allowed)
        if (!admits(0)) return
        // Without a call the reply has an estimated time that is never too late.
        const now =
          reply.leased && list.every((_, index) => admits(index)) ? world.now : reply.decidedAt
        expect(reply.decidedAt).toBeLessThanOrEqual(now)
        for (const [index, { limits }] of list.entries()) {
          if (!admits(index)) continue
          for (const [place, { terms: policy }] of limits.entries()) {
            const { decidedAt: at = now } = reply.states[index]![place]!
            passed.push({ policy, cost, at })
          }
        }
      }
      const expectCounted = async () => {
        const looks = fixed.map((policy) => ({
          mode: 'peek',
          limits: [{ subject, terms: policy, cost: 0 }],
        }))
        const { states } = await world.evaluate(looks as StoreRequest[])
        fixed.forEach((policy, index) => {
          const start = world.now - (world.now % policy.windowMs)
          const units = passed
            .filter((one) => one.policy === policy && one.at >= start)
            .reduce((sum, { cost }) => sum + cost, 0)
          const counted = policy.limit - states[index]![0]!.remaining
          expect(units, policy.tag).toBeLessThanOrEqual(counted)
        })
      }
      for (const { what, which, of, cost, ms } of events) {
        const call = world.calls[which % Math.max(1, world.calls.length)]
        const isolate = which % skews.length
        if (what === 'ask') {
          const enforced = [[a], [a, sliding], [a, b], [sliding, n], [a, b, n], [sliding]][of]!
          pending.push(ask(isolate, enforced, of > 2, cost))
        } else if (what === 'pass') world.now += ms
        // The jump is so large that the isolate notices it.
        else if (what === 'jump') world.skews[isolate]! += (of % 2 ? 1 : -1) * 1_000_000
        else if (what === 'fail') call?.fail()
        else {
          await call?.arrive()
          if (what === 'answer') call?.answer()
        }
        await settled()
        await expectCounted()
      }
      await world.drain()
      await Promise.all(pending)
      const model = new Model()
      const inOrder = passed
        .filter(({ policy }) => policy === sliding)
        .sort((one, other) => one.at - other.at)
      for (const { cost, at } of inOrder) {
        const requests = [take({ subject, terms: sliding, cost })] as ModelRequest[]
        expect(model.decide(requests, at).states[0]![0]!.allowed).toBe(true)
      }
    },
    isLong ? undefined : 12,
  )
})
