/** Policies with leases, and isolates that already hold leased units. */
import type { Limit, StoreRequest } from '../../src/core/connection/store.ts'
import { World } from './isolates.ts'
import type { Server } from './server.ts'
import { newSubject } from './subjects.ts'

export type Policy = Limit['terms']
export type Leasable = 'fixed-window' | 'sliding-window' | 'token-bucket'

/** A limit of 1,000 a minute, without a lease. */
export const terms: Policy = {
  tag: 't',
  algorithm: 'fixed-window',
  limit: 1000,
  windowMs: 60_000,
  burst: 1000,
  align: 'clock',
  localShare: 1,
}

export const policyOf = (change: Partial<Policy> = {}): Policy => ({
  ...terms,
  lease: { max: 10, ttlMs: 1000 },
  ...change,
})
export const take = (...limits: Limit[]): StoreRequest => ({ mode: 'take', limits })
export const peek = (row: Limit): StoreRequest => ({ mode: 'peek', limits: [{ ...row, cost: 0 }] })

/** The units of a limit that Redis has counted. */
export const counted = async (world: World, row: Limit) =>
  row.terms.limit - (await world.evaluate([peek(row)])).states[0]![0]!.remaining

export const start = 1_789_000_000_000

/** Makes an isolate with enough recent requests of a key to take leases. It holds `held` units of a lease. */
export const busyOn = (server: Server) =>
  async function busy(policy: Policy, held = 5, now = start) {
    const world = new World(server, [0])
    world.now = now
    const row: Limit = { subject: newSubject(), terms: policy, cost: 1 }
    const ask = (cost = 1) => world.alone(0, [take({ ...row, cost })])
    let before: number
    do {
      before = world.sent
      await ask()
    } while (world.units() < 2 * policy.lease!.max + 30 || before === world.sent)
    for (let left = policy.lease!.max - 1; left > held; left--) await ask()
    return {
      world,
      row,
      ask,
      held: async () =>
        (await counted(world, row)) - world.units((passed) => passed.row.terms === policy),
    }
  }
