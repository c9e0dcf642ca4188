/** Units that an isolate holds: how many it leases, for how long it spends them, and when it refunds them. */
import { describe, expect, test } from 'vitest'
import type { StoreReply } from '../../../src/store/store.ts'
import { settled } from '../../support/isolates.ts'
import { busyOn, type Leasable, type Policy, policyOf, start, take } from '../../support/leases.ts'
import { useServer } from '../../support/server.ts'

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

  test('A lease has half of the units requested during its lifetime, and no units without recent demand.', async () => {
    const { world, row, ask, held } = await busy({ ...big, lease: { max: 1000, ttlMs: 1000 } }, 0)
    world.now += 5000
    await ask()
    expect(await held()).toBe(0)
    // 20 requests a second, one after the other.
    for (let times = 0; times < 60; times++) {
      world.now += 50
      await ask()
    }
    const sizes: number[] = []
    for (let times = 0; times < 60; times++) {
      world.now += 50
      const before = world.sent
      await ask()
      if (world.sent > before) sizes.push(1 + (await held()))
    }
    expect(Math.min(...sizes)).toBeGreaterThanOrEqual(9)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(11)
    expect(row.cost).toBe(1)
  })

  test('A lease has at most a sixteenth of the units left, so that the last units are taken one by one.', async () => {
    const policy = { ...big, limit: 400, lease: { max: 20, ttlMs: 10_000 } }
    const { ask, row, world, held } = await busy(policy, 0)
    while ((await ask()).states[0]![0]!.allowed) {
      const [taken, left] = [await held(), row.terms.limit - world.units()]
      expect(taken).toBeLessThanOrEqual(Math.max(0, left / 15))
    }
    expect(world.units()).toBe(400)
  })

  /** In the middle of a minute, 30 s before its end. */
  const half = 1_789_000_050_000
  test.each<[Leasable, ttlMs: number, lastsMs: number]>([
    ['fixed-window', 1000, 1000],
    ['fixed-window', 60_000, 30_000],
    ['sliding-window', 1000, 1000],
    ['sliding-window', 60_000, 30_000],
    ['token-bucket', 60_000, 60_000],
  ])(
    'Units of a %s that are leased for %i ms can be spent for %i ms.',
    async (algorithm, ttlMs, lastsMs) => {
      const lease = { max: 10, ttlMs }
      const { world, ask } = await busy({ ...big, algorithm, windowMs: 60_000, lease }, 5, half)
      world.now = half + lastsMs - 1
      const before = world.sent
      await ask()
      expect(world.sent).toBe(before)
      world.now += 1
      await ask()
      expect(world.sent).toBe(before + 1)
    },
  )

  test('The next call refunds an expired lease, with the decidedAt of its charge.', async () => {
    const { world, row, held } = await busy(big, 5)
    world.now += 20_000
    void world.ask(0, [take({ ...row })])
    await settled()
    const [refund, request] = world.calls[0]!.requests
    expect(refund).toMatchObject({ mode: 'refund', limits: [{ cost: 5 }], decidedAt: start })
    expect(request).toMatchObject({ mode: 'take', limits: [{ cost: 1 }] })
    await world.drain()
    expect(await held()).toBe(0)
  })

  test('A lease whose window has ended is not refunded.', async () => {
    const { world, row } = await busy({ ...big, windowMs: 60_000 }, 5)
    world.now += 60_000
    void world.ask(0, [take({ ...row })])
    await settled()
    expect(world.calls[0]!.requests.map(({ mode }) => mode)).not.toContain('refund')
  })

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

  test('While the store is unavailable, the lease is spent to its last unit.', async () => {
    const { world, row } = await busy(big, 5)
    const answers = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const pending = world.ask(0, [take({ ...row })])
        await settled()
        for (const call of [...world.calls]) call.fail()
        return pending
      }),
    )
    expect(answers.map((answer) => (typeof answer === 'string' ? answer : 'passed'))).toEqual([
      ...Array(5).fill('passed'),
      ...Array(3).fill('timeout'),
    ])
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

  test.each(['reset', 'ban', 'unban'] as const)(
    'The operation %s drops the held units.',
    async (mode) => {
      const { world, row, ask } = await busy(big, 5)
      const penalty = { tag: 'p', after: 1, withinMs: 1, banMs: 1, maxMs: 1 }
      const limits = [{ ...row, ...(mode === 'ban' && { penalty }) }]
      const before = world.sent
      const [reset] = [world.isolates[0]!.decideEach([[{ mode, limits: limits }]])]
      await world.drain()
      await reset
      await ask()
      expect(world.sent).toBe(before + 2)
    },
  )

  test('Units in flight during a reset are dropped.', async () => {
    const { world, row, ask } = await busy(big, 0)
    const refilling = world.ask(0, [take({ ...row })])
    await settled()
    expect(world.calls[0]!.requests.map(({ mode }) => mode)).toEqual(['take', 'follow'])
    const reset = world.ask(0, [{ mode: 'reset', limits: [row] }])
    await settled()
    await world.drain()
    await Promise.all([refilling, reset])
    const before = world.sent
    await ask()
    expect(world.sent).toBe(before + 1)
  })

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
    const [each] = (await refused(world.isolates[0]!.decideEach([list]))) as never as StoreReply[]
    expect(each!.leased).toBe(true)
  })
})
