/** Units that an isolate holds: how many it leases, for how long it spends them, and when it refunds them. */
import { describe, expect, test } from 'vitest'
import type { StoreReply, StoreRequest } from '../../../../src/core/connection/store.ts'
import { busyOn, type Policy, policyOf, take } from '../../../support/leases.ts'
import { useServer } from '../../../support/server.ts'

const busy = busyOn(useServer())

describe('leased units', () => {
  const big = policyOf({ limit: 100_000, burst: 100_000, windowMs: 3_600_000 })

  test.each([10, 50])(
    'A lease of %i units answers as many requests with one call.',
    async (max) => {
      const { world, ask } = await busy({ ...big, lease: { max, ttlMs: 10_000 } }, 0)
      const before = world.sent
      for (let times = 0; times < 10 * max; times++) await ask()
      expect(world.sent - before).toBe(10)
    },
  )

  test('A reply from a lease has the state that a reply of Redis would have.', async () => {
    const { world, ask } = await busy(big, 5)
    world.now += 300
    const reply = await ask()
    expect(reply).toEqual({
      decidedAt: world.now,
      states: [
        [
          {
            allowed: true,
            remaining: big.limit - world.units(),
            retryAfterMs: 0,
            resetAfterMs: big.windowMs - (world.now % big.windowMs),
            nextAfterMs: big.windowMs - (world.now % big.windowMs),
          },
        ],
      ],
      leased: true,
    })
  })

  test.each<[what: string, change: Partial<Policy>]>([
    ['limit', { limit: 50_000 }],
    ['burst', { burst: 50_000 }],
    ['lease', { lease: { max: 9, ttlMs: 10_000 } }],
  ])('A changed %s needs a new lease.', async (_, change) => {
    const { world, row } = await busy(big, 5)
    const before = world.sent
    await world.alone(0, [take({ ...row, terms: { ...row.terms, ...change } })])
    expect(world.sent).toBe(before + 1)
  })

  test.each(['reset', 'ban', 'unban', 'override', 'restore'] as const)(
    'The operation %s drops the held units.',
    async (mode) => {
      const { world, row, ask } = await busy(big, 5)
      const penalty = { tag: 'p', after: 1, withinMs: 1, banMs: 1, maxMs: 1 }
      const override = { share: 0, scalesBurst: true }
      const limits = [{ ...row, override, ...(mode === 'ban' && { penalty }) }]
      const request = { mode, limits, units: 7, forMs: 1 } as StoreRequest
      const before = world.sent
      const [reset] = [world.isolates[0]!.decideEach([[request]], {})]
      await world.drain()
      await reset
      await ask()
      expect(world.sent).toBe(before + 2)
    },
  )

  test('Held units are not spent after the clock is set back.', async () => {
    const { world, ask } = await busy(big, 5)
    world.now -= 2000
    const before = world.sent
    await ask()
    expect(world.sent).toBe(before + 1)
  })

  test('While units are held, a refusal by Redis is marked as leased.', async () => {
    const { world, row } = await busy(big, 5)
    const list = [take({ ...row, cost: 100_001 })]
    const refused = async (isolate: Promise<unknown>) => {
      await world.drain()
      return (await isolate) as StoreReply
    }
    expect((await refused(world.isolates[0]!.decide(list, { now: world.now }))).leased).toBe(true)
    const [each] = (await refused(
      world.isolates[0]!.decideEach([list, list], {}),
    )) as never as StoreReply[]
    expect(each!.leased).toBe(true)
  })
})
