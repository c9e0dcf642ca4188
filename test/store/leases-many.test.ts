/** Leases of requests with several limits, and of many calls at once: what nobody may count twice, and what may not last. */
import { describe, expect, test } from 'vitest'
import type { LimitRow, StoreReply, StoreRequest } from '../../src/store/store.ts'
import { useServer } from '../lua/server.ts'
import { newSubject } from '../lua/subjects.ts'
import { settled, World } from './isolates.ts'

const server = useServer()

const leased: LimitRow['policy'] = {
  tag: 't',
  algorithm: 'fixed-window',
  limit: 100_000,
  windowMs: 60_000,
  burst: 100_000,
  align: 'clock',
  localShare: 1,
  lease: { max: 10, ttlMs: 10_000 },
}
const small: LimitRow['policy'] = {
  ...leased,
  tag: 'small',
  limit: 1,
  windowMs: 3_600_000,
  lease: undefined,
}
const take = (...rows: LimitRow[]): StoreRequest => ({ mode: 'take', rows })

/** The beginning of a minute. */
const start = 1_789_000_020_000

/** A key that is asked for so often that it is worth a lease. */
async function busy(policy = leased, now = start) {
  const world = new World(server, [0])
  world.now = now
  const row: LimitRow = { subject: newSubject(), policy, cost: 1 }
  const ask = (cost = 1) => world.alone(0, [take({ ...row, cost })])
  const held = async () => {
    const looked = await world.evaluate([{ mode: 'look', rows: [{ ...row, cost: 0 }] }])
    const counted = row.policy.burst - looked.requests[0]![0]!.remaining
    return counted - world.units((passed) => passed.row.policy === policy)
  }
  /** Asks until so many are held. */
  async function hold(count: number) {
    for (let tries = 0; tries < 50 && (await held()) !== count; tries++) await ask()
    expect(await held()).toBe(count)
  }
  for (let times = 0; times < 30; times++) await ask()
  return { world, row, ask, hold, held }
}

describe('a request with another limit', () => {
  const other = (): LimitRow => ({ subject: newSubject(), policy: small, cost: 1 })

  test('that only the other one refuses is a proof, though units are held', async () => {
    const { world, row, hold, held } = await busy()
    await hold(5)
    const its = other()
    const both = () => world.alone(0, [take({ ...row }, { ...its })])
    expect((await both()).requests[0]!.map(({ allowed }) => allowed)).toEqual([true, true])
    const refused = await both()
    expect(refused.requests[0]!.map(({ allowed }) => allowed)).toEqual([true, false])
    expect(await held()).toBe(4)
    expect(refused.leased).toBeUndefined()
  })

  test('that was lent a unit right before the end of a window gives none back to the next', async () => {
    const { world, row, hold } = await busy(leased, start + 55_000)
    await hold(5)
    world.now = start + 60_000 - 10
    const both = world.ask(0, [take({ ...row }, other())])
    await settled()
    world.now += 20
    await world.drain()
    const { now } = (await both) as StoreReply
    const next = { ...row, cost: 3 }
    await world.evaluate([take(next)])
    const back: StoreRequest = { mode: 'give-back', rows: [row], receipt: now }
    const { requests } = await world.evaluate([back])
    expect(requests[0]![0]!.remaining).toBe(leased.limit - 3)
  })

  test('that is gone and never comes back does not lessen leases for ever', async () => {
    const { world, row, ask, hold } = await busy()
    await hold(9)
    for (let times = 0; times < 9; times++) void world.ask(0, [take({ ...row }, other())])
    await settled()
    world.calls.splice(0) // nobody ever answers
    world.now += 700_000
    for (let times = 0; times < 30; times++) await ask()
    const before = world.sent
    for (let times = 0; times < 20; times++) await ask()
    expect(world.sent - before).toBe(2)
  })
})

test('a bucket has lent no more than max, what is on its way back included', async () => {
  const bucket: LimitRow['policy'] = {
    ...leased,
    algorithm: 'token-bucket',
    limit: 1000,
    windowMs: 3_600_000,
    lease: { max: 10, ttlMs: 1000 },
  }
  const { world, row, hold } = await busy(bucket)
  await hold(9)
  world.now += 5000 // it has ended, and nobody asked lately
  const asked = Array.from({ length: 12 }, () => world.ask(0, [take({ ...row })]))
  await settled()
  const [first] = world.calls
  expect(first!.requests[0]).toMatchObject({ mode: 'give-back', rows: [{ cost: 9 }] })
  // While that call is on its way, for long, others bring more.
  const later = world.calls.slice(1).flatMap(({ requests }) => requests)
  const more = later.filter(({ mode }) => mode === 'shadow').map(({ rows }) => rows[0]!.cost)
  expect(more.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(1)
  await world.drain()
  await Promise.all(asked)
})

test('what was taken from a window that is over does not spoil what is of the next', async () => {
  const { world, row, ask, hold } = await busy(leased, start + 55_000)
  const other: LimitRow = { subject: newSubject(), policy: small, cost: 1 }
  await world.evaluate([take({ ...other })]) // all that it has
  await hold(5)
  world.now = start + 60_000 - 10
  const refused = world.ask(0, [take({ ...row }, other)])
  await settled()
  const [old] = world.calls
  world.now += 20
  const fresh = world.ask(0, [take({ ...row })])
  await settled()
  const [, call] = world.calls
  await call!.arrive()
  call!.answer()
  await fresh
  await old!.arrive()
  old!.answer() // which puts back the unit that was lent
  await refused
  const before = world.sent
  await ask()
  expect(world.sent).toBe(before)
})

test('what goes back by one plan gives nothing to another plan of the same counter', async () => {
  const debt = {
    ...leased,
    algorithm: 'gcra',
    limit: 100,
    burst: 400,
    windowMs: 3_600_000,
  } as const
  const { world, row, ask, hold } = await busy(debt)
  await hold(5)
  const large = { ...row, policy: { ...debt, burst: 2000 } }
  const left = async (cost: number) => {
    const mode = cost === 0 ? 'look' : 'take'
    const { requests } = await world.evaluate([{ mode, rows: [{ ...large, cost }] }])
    return requests[0]![0]!.remaining
  }
  const before = await left(1000)
  world.now += 20_000
  await ask() // gives back what was held, and is refused itself
  expect((await left(0)) - before).toBeLessThanOrEqual(5 + 1) // what has drained since
})
