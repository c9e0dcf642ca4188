/** Leases of requests with a floor. */
import { expect, test } from 'vitest'
import type { Limit, StoreReply } from '../../../../src/core/connection/store.ts'
import { busyOn, type Leasable, policyOf, take } from '../../../support/leases.ts'
import { useServer } from '../../../support/server.ts'

const busy = busyOn(useServer())
const stateOf = ({ states }: StoreReply) => states[0]![0]!

test.each<Leasable>(['fixed-window', 'sliding-window', 'token-bucket'])(
  '%s: A request with a floor does not spend units that were leased without one, and leaves its floor free.',
  async (algorithm) => {
    const policy = policyOf({ algorithm, lease: { max: 20, ttlMs: 10_000 } })
    const { world, row } = await busy(policy, 5)
    const floored: Limit = { ...row, floor: 500 }
    const ask = async (limit: Limit) => stateOf(await world.alone(0, [take(limit)]))

    const before = world.sent
    await ask(row)
    expect(world.sent).toBe(before) // from the lease
    await ask(floored)
    expect(world.sent).toBe(before + 1)

    let state = await ask(floored)
    while (state.allowed) state = await ask(floored)
    expect(state).toMatchObject({ remaining: 0, reserved: 500 })
    const others = stateOf(await world.evaluate([{ mode: 'peek', limits: [row] }]))
    expect(others.remaining).toBe(500)
    expect((await ask(row)).allowed).toBe(true)
  },
)

test('An answer from a lease with a floor reports what is left above it.', async () => {
  const { world, row } = await busy(policyOf({ lease: { max: 20, ttlMs: 10_000 } }), 0)
  const floored: Limit = { ...row, floor: 100 }
  for (let times = 0; times < 40; times++) {
    const before = world.sent
    const { remaining, reserved } = stateOf(await world.alone(0, [take(floored)]))
    const own = stateOf(await world.evaluate([{ mode: 'peek', limits: [row] }])).remaining - 100
    expect(reserved).toBe(100)
    if (world.sent > before) expect(remaining).toBeGreaterThanOrEqual(own)
    expect(remaining).toBeLessThanOrEqual(own + 20)
  }
})

test('A debt passes through leases, and leaves held units as they are.', async () => {
  const { world, row, held } = await busy(policyOf({}), 5)
  const { states } = await world.alone(0, [{ mode: 'debt', limits: [{ ...row, cost: 2000 }] }])
  expect(states[0]![0]).toMatchObject({ allowed: true, remaining: 0 })
  expect(await held()).toBeGreaterThan(0)
  const before = world.sent
  expect(stateOf(await world.alone(0, [take(row)])).allowed).toBe(true)
  expect(world.sent).toBe(before)
})
