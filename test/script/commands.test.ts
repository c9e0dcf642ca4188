import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Idempotency } from '../../src/store/store.ts'
import type { ModelPolicy, ModelRequest } from '../model/model.ts'
import { property } from '../support/law.ts'
import { formatCalls, runOnOracle } from '../support/run-on-oracle.ts'
import { algorithms, schedule } from '../support/schedules.ts'
import { useServer } from '../support/server.ts'
import { newSubject } from '../support/subjects.ts'

// Use a separate Redis: the tests count all of its commands.
delete process.env.REDIS_URL
const server = useServer()
const recorded = algorithms.filter((name) => name !== 'sliding-log')

/** Ten limits, with every algorithm that uses the record. */
const policies: ModelPolicy[] = Array.from({ length: 10 }, (_, index) => ({
  tag: `t${index}`,
  algorithm: recorded[index % recorded.length]!,
  limit: 40,
  windowMs: 60_000,
  burst: 40,
  align: 'clock',
}))

const request = (subject: string, mode: ModelRequest['mode'] = 'take', cost = 1): ModelRequest => ({
  mode,
  limits: policies.map((policy) => ({ subject, terms: policy, cost })),
})

/** Returns the commands that Redis executed for one call. Upstash bills each of them. */
async function commands(requests: ModelRequest[], now?: number, idempotency?: Idempotency) {
  await server.send('CONFIG', 'RESETSTAT')
  await server.decide(requests, now, idempotency)
  const stats = String(await server.send('INFO', 'commandstats'))
  const counted = [...stats.matchAll(/cmdstat_([^:]+):calls=(\d+)/g)]
    .filter(([, name]) => name !== 'config|resetstat' && name !== 'info')
    .map(([, name, calls]) => [name, Number(calls)])
  return Object.fromEntries(counted)
}

/** One record is read by GET, several by MGET. */
const decided = { evalsha: 1, time: 1, get: 1 }
const decidedMany = { evalsha: 1, time: 1, mget: 1 }

test('Ten limits of one subject cost four commands if admitted and three if refused.', async () => {
  const subject = newSubject()
  expect(await commands([request(subject)])).toEqual({ ...decided, set: 1 })
  expect(await commands([request(subject, 'take', 40)])).toEqual(decided)
})

test('A peek costs three commands.', async () => {
  expect(await commands([request(newSubject(), 'peek')])).toEqual(decided)
})

test('A request with a cost of 0 costs three commands.', async () => {
  expect(await commands([request(newSubject(), 'take', 0)])).toEqual(decided)
})

test('Thirty requests of one subject share one write.', async () => {
  const subject = newSubject()
  const thirty = Array.from({ length: 30 }, () => request(subject))
  expect(await commands(thirty)).toEqual({ ...decided, set: 1 })
})

test('A follow request costs no command if another request of the call has the same subject.', async () => {
  const subject = newSubject()
  const { limits } = request(subject)
  const follows = (cost = 1) =>
    limits.slice(5).map((row): ModelRequest => ({ mode: 'follow', limits: [{ ...row, cost }] }))
  const enforced = (cost = 1): ModelRequest => ({
    mode: 'take',
    limits: limits.slice(0, 5).map((row) => ({ ...row, cost })),
  })
  expect(await commands([enforced(), ...follows()])).toEqual({ ...decided, set: 1 })
  expect(await commands([enforced(), ...follows(40)])).toEqual({ ...decided, set: 1 })
  expect(await commands([enforced(40), ...follows()])).toEqual(decided)
})

test('Each charged subject costs one write, and a subject without a charge costs none.', async () => {
  const [first, second, third] = [newSubject(), newSubject(), newSubject()]
  const three = [request(first), request(second), request(third, 'peek')]
  expect(await commands(three)).toEqual({ ...decidedMany, set: 2 })
})

test('A call that sends the time does not need the TIME command.', async () => {
  expect(await commands([request(newSubject())], 1_789_000_000_000)).toEqual({
    evalsha: 1,
    get: 1,
    set: 1,
  })
})

test('A refund costs one SET, or one DEL if the record becomes empty.', async () => {
  const subject = newSubject()
  const now = 1_789_000_000_000
  await server.decide([request(subject, 'take', 2)], now)
  const refund = { evalsha: 1, get: 1 }
  expect(await commands([request(subject, 'refund')], now)).toEqual({ ...refund, set: 1 })
  expect(await commands([request(subject, 'refund')], now)).toEqual({ ...refund, del: 1 })
  expect(await commands([request(subject, 'refund')], now)).toEqual(refund)
})

test('A sliding log costs its own commands and no write of a record.', async () => {
  const policy: ModelPolicy = { ...policies[0]!, algorithm: 'sliding-log', limit: 1000 }
  const subject = newSubject()
  const of = (mode: ModelRequest['mode'], cost: number): ModelRequest => ({
    mode,
    limits: [{ subject, terms: policy, cost }],
  })
  const now = 1_789_000_000_000
  const first = { evalsha: 1, zrevrange: 1, zremrangebyscore: 1, zadd: 1, pexpire: 1 }
  expect(await commands([of('take', 1)], now)).toEqual(first)
  const read = { evalsha: 1, zrevrange: 1, zcount: 1 }
  const write = { zremrangebyscore: 1, pexpire: 1 }
  const second = await commands([of('take', 999)], now + 1)
  expect(second).toEqual({ ...read, ...write, zadd: 2 })
  expect(await commands([of('take', 1)], now + 2)).toEqual({ ...read, zrangebyscore: 1 })
  expect(await commands([of('peek', 500)], now + 2)).toEqual({ ...read, zrangebyscore: 2 })
})

test('Slots cost their own commands and no write of a record.', async () => {
  const policy: ModelPolicy = { ...policies[0]!, algorithm: 'concurrency', limit: 2 }
  const subject = newSubject()
  const of = (mode: ModelRequest['mode'], slot: string): ModelRequest[] => [
    { mode, limits: [{ subject, terms: policy, cost: 1, slot }] },
  ]
  const now = 1_789_000_000_000
  const read = { evalsha: 1, zrange: 1 }
  const write = { zadd: 1, pexpire: 1 }
  expect(await commands(of('take', 'a'), now)).toEqual({ ...read, ...write })
  expect(await commands(of('take', 'b'), now + 1)).toEqual({ ...read, ...write })
  expect(await commands(of('take', 'c'), now + 1)).toEqual(read)
  expect(await commands(of('take', 'b'), now + 1)).toEqual(read)
  expect(await commands(of('peek', 'c'), now + 1)).toEqual(read)
  expect(await commands(of('refund', 'b'), now + 1)).toEqual({ ...read, zrem: 1 })
  expect(await commands(of('refund', 'b'), now + 1)).toEqual(read)
  // The dead slot is removed.
  const later = now + 60_000
  expect(await commands(of('take', 'c'), later)).toEqual({ ...read, ...write, zremrangebyscore: 1 })
})

test('Slots cost a few more commands if 32 or more are stored.', async () => {
  const policy: ModelPolicy = { ...policies[0]!, algorithm: 'concurrency', limit: 40 }
  const subject = newSubject()
  const of = (mode: ModelRequest['mode'], slot: string, cost = 1): ModelRequest[] => [
    { mode, limits: [{ subject, terms: policy, cost, slot }] },
  ]
  const now = 1_789_000_000_000
  const read = { evalsha: 1, zrange: 1, zcount: 1, zrevrange: 1 }
  for (let index = 0; index < 39; index++) await server.decide(of('take', `s${index}`), now + index)
  expect(await commands(of('take', 'last'), now + 39)).toEqual({
    ...read,
    zscore: 1,
    zadd: 1,
    pexpire: 1,
  })
  expect(await commands(of('take', 'none'), now + 40)).toEqual({ ...read, zscore: 1 })
  expect(await commands(of('take', 'many', 35), now + 40)).toEqual({
    ...read,
    zscore: 1,
    zrangebyscore: 1,
  })
  expect(await commands(of('refund', 'last'), now + 40)).toEqual({ ...read, zrange: 2, zrem: 1 })
})

const penalty = { after: 2, withinMs: 60_000, banMs: 60_000, maxMs: 60_000 }

test('A penalty costs no command until it counts a refusal, and then one SET.', async () => {
  const subject = newSubject()
  const of = (cost: number): ModelRequest[] => [
    {
      mode: 'take',
      limits: policies.map((policy) => ({ subject, terms: { ...policy, penalty }, cost })),
    },
  ]
  expect(await commands(of(1))).toEqual({ ...decided, set: 1 })
  expect(await commands([{ ...of(1)[0]!, mode: 'peek' }])).toEqual(decided)
  expect(await commands(of(40))).toEqual({ ...decided, set: 1 })
  expect(await commands(of(40))).toEqual({ ...decided, set: 1 })
  // A ban counts no refusals.
  expect(await commands(of(40))).toEqual(decided)
  expect(await commands(of(1))).toEqual(decided)
})

test.each([
  ['sliding-log', { zrevrange: 1, zremrangebyscore: 1, zadd: 1, pexpire: 1 }],
  ['concurrency', { zrange: 1, zadd: 1, pexpire: 1 }],
] as const)(
  'A penalty of a %s limit costs one GET, because the limit itself does not read the record.',
  async (algorithm, own) => {
    const policy: ModelPolicy = { ...policies[0]!, algorithm, penalty }
    const limits = [{ subject: newSubject(), terms: policy, cost: 1 }]
    expect(await commands([{ mode: 'take', limits }])).toEqual({ ...decided, ...own })
  },
)

const penal = (subject: string, mode: ModelRequest['mode'], cost = 1): ModelRequest => ({
  mode,
  limits: policies.map((policy) => ({ subject, terms: { ...policy, penalty }, cost })),
})

test('A reset costs one SET, one DEL if the record becomes empty, and no write without a state.', async () => {
  const subject = newSubject()
  await server.decide([penal(subject, 'take')])
  await server.decide([penal(subject, 'take', 40)])
  const { limits } = penal(subject, 'reset')
  const some: ModelRequest = { mode: 'reset', limits: limits.slice(0, 4) }
  expect(await commands([some])).toEqual({ ...decided, set: 1 })
  expect(await commands([some])).toEqual(decided)
  expect(await commands([penal(subject, 'reset')])).toEqual({ ...decided, del: 1 })
  expect(await commands([penal(subject, 'reset')])).toEqual(decided)
})

test.each(['sliding-log', 'concurrency'] as const)(
  'A reset of a %s limit costs one DEL.',
  async (algorithm) => {
    const policy: ModelPolicy = { ...policies[0]!, algorithm }
    const of = (mode: ModelRequest['mode']): ModelRequest[] => [
      { mode, limits: [{ subject: 'x', terms: policy, cost: 1 }] },
    ]
    await server.decide(of('take'), 1_789_000_000_000)
    expect(await commands(of('reset'))).toEqual({ evalsha: 1, time: 1, del: 1 })
  },
)

test('A ban costs one SET, an unban costs one write, and an unban without a ban costs none.', async () => {
  const subject = newSubject()
  expect(await commands([penal(subject, 'ban')])).toEqual({ ...decided, set: 1 })
  await setTimeout(2) // the same ban in the same millisecond changes nothing
  expect(await commands([penal(subject, 'ban')])).toEqual({ ...decided, set: 1 })
  expect(await commands([penal(subject, 'unban')])).toEqual({ ...decided, del: 1 })
  expect(await commands([penal(subject, 'unban')])).toEqual(decided)
  await server.decide([penal(subject, 'take')])
  await server.decide([penal(subject, 'ban')])
  expect(await commands([penal(subject, 'unban')])).toEqual({ ...decided, set: 1 })
})

test('An idempotency key costs one SET, even for a refusal, and a replay costs none.', async () => {
  const subject = newSubject()
  const idempotency = (key: string): Idempotency => ({
    key: `${subject}-${key}`,
    fingerprint: 'f',
    forMs: 60_000,
  })
  expect(await commands([request(subject)], undefined, idempotency('a'))).toEqual({
    ...decidedMany,
    set: 2,
  })
  expect(await commands([request(subject)], undefined, idempotency('a'))).toEqual(decidedMany)
  const refused = [request(subject, 'take', 40)]
  expect(await commands(refused, undefined, idempotency('b'))).toEqual({ ...decidedMany, set: 1 })
  expect(await commands(refused, undefined, idempotency('b'))).toEqual(decidedMany)
  // A replay does not read or write the slots.
  const slots: ModelPolicy = { ...policies[0]!, algorithm: 'concurrency' }
  const take: ModelRequest[] = [{ mode: 'take', limits: [{ subject, terms: slots, cost: 1 }] }]
  const own = { zrange: 1, zadd: 1, pexpire: 1 }
  expect(await commands(take, undefined, idempotency('c'))).toEqual({ ...decided, ...own, set: 1 })
  expect(await commands(take, undefined, idempotency('c'))).toEqual(decided)
})

property(
  'Penalties add no command to a call without refusals and bans.',
  schedule(recorded, { policies: 3, subjects: 2, requests: 3, steps: 6, penalties: true }),
  async (plan) => {
    const { calls, replies } = runOnOracle(plan)
    for (const [index, { requests, now }] of calls.entries()) {
      if (replies[index]!.states.flat().some(({ allowed }) => !allowed)) return
      const without = requests.map((request) => ({
        ...request,
        limits: request.limits.map(({ penalty: _, ...row }) => {
          const { penalty: __, ...policy } = row.terms
          return { ...row, policy, subject: `${row.subject}-free` }
        }),
      }))
      const story = formatCalls(calls.slice(0, index + 1))
      expect(await commands(requests, now), story).toEqual(await commands(without, now))
    }
  },
  100,
  1,
)
