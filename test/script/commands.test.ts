import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Idempotency } from '../../src/core/connection/store.ts'
import type { ModelPolicy, ModelRequest } from '../model/model.ts'
import { start as now, policyOf } from '../support/ask.ts'
import { property } from '../support/law.ts'
import { formatCalls, runOnOracle } from '../support/run-on-oracle.ts'
import { algorithms, schedule } from '../support/schedules.ts'
import { useServer } from '../support/server.ts'
import { newSubject } from '../support/subjects.ts'

// Use a separate Redis: the tests count all of its commands.
delete process.env.REDIS_URL
const server = useServer()
const { commands } = server
const recorded = algorithms.filter((name) => name !== 'sliding-log')

/** Ten limits, with every algorithm that uses the record. */
const policies = Array.from({ length: 10 }, (_, index) =>
  policyOf({
    tag: `t${index}`,
    algorithm: recorded[index % recorded.length]!,
    limit: 40,
    windowMs: 60_000,
    burst: 40,
    align: 'clock',
  }),
)

const request = (
  subject: string,
  mode: ModelRequest['mode'] = 'take',
  cost = 1,
  more: Partial<ModelPolicy> = {},
): ModelRequest => ({
  mode,
  limits: policies.map((policy) => ({ subject, terms: { ...policy, ...more }, cost })),
})

/** Requests of one limit whose algorithm has its own key. */
const apart = (algorithm: 'sliding-log' | 'concurrency', more: Partial<ModelPolicy> = {}) => {
  const [subject, terms] = [newSubject(), { ...policies[0]!, algorithm, ...more }]
  return (mode: ModelRequest['mode'], cost = 1, slot = 'a'): ModelRequest[] => [
    { mode, limits: [{ subject, terms, cost, slot }] },
  ]
}

/** One record is read by GET, several by MGET. */
const decided = { evalsha: 1, time: 1, get: 1 }
const decidedMany = { evalsha: 1, time: 1, mget: 1 }
const write = { set: 1 }

test('A call of one subject costs four commands if it charges, whatever its size, and three if not.', async () => {
  const subject = newSubject()
  const thirty = Array.from({ length: 30 }, () => request(subject))
  expect(await commands([request(subject)])).toEqual({ ...decided, ...write })
  expect(await commands(thirty)).toEqual({ ...decided, ...write })
  expect(await commands([request(subject, 'take', 40)])).toEqual(decided)
  expect(await commands([request(newSubject(), 'peek')])).toEqual(decided)
  expect(await commands([request(newSubject(), 'take', 0)])).toEqual(decided)
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
  expect(await commands([enforced(), ...follows()])).toEqual({ ...decided, ...write })
  expect(await commands([enforced(), ...follows(40)])).toEqual({ ...decided, ...write })
  expect(await commands([enforced(40), ...follows()])).toEqual(decided)
})

test('Each charged subject costs one write, and a subject without a charge costs none.', async () => {
  const [first, second, third] = [newSubject(), newSubject(), newSubject()]
  const three = [request(first), request(second), request(third, 'peek')]
  expect(await commands(three)).toEqual({ ...decidedMany, set: 2 })
})

test('A refund costs one SET, or one DEL if the record becomes empty, and a sent time saves TIME.', async () => {
  const subject = newSubject()
  const read = { evalsha: 1, get: 1 }
  expect(await commands([request(subject, 'take', 2)], now)).toEqual({ ...read, ...write })
  expect(await commands([request(subject, 'refund')], now)).toEqual({ ...read, ...write })
  expect(await commands([request(subject, 'refund')], now)).toEqual({ ...read, del: 1 })
  expect(await commands([request(subject, 'refund')], now)).toEqual(read)
})

test('A sliding log costs its own commands and no write of a record.', async () => {
  const of = apart('sliding-log', { limit: 1000 })
  const first = { evalsha: 1, zrevrange: 1, zremrangebyscore: 1, zadd: 1, pexpire: 1 }
  expect(await commands(of('take'), now)).toEqual(first)
  const read = { evalsha: 1, zrevrange: 1, zcount: 1 }
  const second = await commands(of('take', 999), now + 1)
  expect(second).toEqual({ ...read, zremrangebyscore: 1, pexpire: 1, zadd: 2 })
  expect(await commands(of('take'), now + 2)).toEqual({ ...read, zrangebyscore: 1 })
  expect(await commands(of('peek', 500), now + 2)).toEqual({ ...read, zrangebyscore: 2 })
  expect(await commands(of('reset'))).toEqual({ evalsha: 1, time: 1, del: 1 })
})

test('Slots cost their own commands and no write of a record.', async () => {
  const of = apart('concurrency', { limit: 2 })
  const read = { evalsha: 1, zrange: 1 }
  const own = { zadd: 1, pexpire: 1 }
  expect(await commands(of('take', 1, 'a'), now)).toEqual({ ...read, ...own })
  expect(await commands(of('take', 1, 'b'), now + 1)).toEqual({ ...read, ...own })
  expect(await commands(of('take', 1, 'c'), now + 1)).toEqual(read)
  expect(await commands(of('take', 1, 'b'), now + 1)).toEqual(read)
  expect(await commands(of('peek', 1, 'c'), now + 1)).toEqual(read)
  expect(await commands(of('refund', 1, 'b'), now + 1)).toEqual({ ...read, zrem: 1 })
  expect(await commands(of('refund', 1, 'b'), now + 1)).toEqual(read)
  // The dead slot is removed.
  const removed = { ...read, ...own, zremrangebyscore: 1 }
  expect(await commands(of('take', 1, 'c'), now + 60_000)).toEqual(removed)
  expect(await commands(of('reset'))).toEqual({ evalsha: 1, time: 1, del: 1 })
})

test('Slots cost a few more commands if 32 or more are stored.', async () => {
  const of = apart('concurrency', { limit: 40 })
  const read = { evalsha: 1, zrange: 1, zcount: 1, zrevrange: 1 }
  const more = { ...read, zscore: 1 }
  for (let index = 0; index < 39; index++) await server.decide(of('take', 1, `s${index}`), now)
  expect(await commands(of('take', 1, 'last'), now + 39)).toEqual({ ...more, zadd: 1, pexpire: 1 })
  expect(await commands(of('take', 1, 'none'), now + 40)).toEqual(more)
  expect(await commands(of('take', 35, 'many'), now + 40)).toEqual({ ...more, zrangebyscore: 1 })
  const released = { ...read, zrange: 2, zrem: 1 }
  expect(await commands(of('refund', 1, 'last'), now + 40)).toEqual(released)
})

const penalty = { after: 2, withinMs: 60_000, banMs: 60_000, maxMs: 60_000 }
const penal = (subject: string, mode: ModelRequest['mode'], cost = 1) => [
  request(subject, mode, cost, { penalty }),
]

test('A penalty costs no command until it counts a refusal, and then one SET.', async () => {
  const subject = newSubject()
  expect(await commands(penal(subject, 'take'))).toEqual({ ...decided, ...write })
  expect(await commands(penal(subject, 'peek'))).toEqual(decided)
  expect(await commands(penal(subject, 'take', 40))).toEqual({ ...decided, ...write })
  expect(await commands(penal(subject, 'take', 40))).toEqual({ ...decided, ...write })
  // A ban counts no refusals.
  expect(await commands(penal(subject, 'take', 40))).toEqual(decided)
  expect(await commands(penal(subject, 'take'))).toEqual(decided)
})

test.each([
  ['sliding-log', { zrevrange: 1, zremrangebyscore: 1, zadd: 1, pexpire: 1 }],
  ['concurrency', { zrange: 1, zadd: 1, pexpire: 1 }],
] as const)(
  'A penalty of a %s limit costs one GET, because the limit itself does not read the record.',
  async (algorithm, own) => {
    expect(await commands(apart(algorithm, { penalty })('take'))).toEqual({ ...decided, ...own })
  },
)

test('A reset costs one SET, one DEL if the record becomes empty, and no write without a state.', async () => {
  const subject = newSubject()
  await server.decide(penal(subject, 'take'))
  await server.decide(penal(subject, 'take', 40))
  const [all] = penal(subject, 'reset')
  const some: ModelRequest = { mode: 'reset', limits: all!.limits.slice(0, 4) }
  expect(await commands([some])).toEqual({ ...decided, ...write })
  expect(await commands([some])).toEqual(decided)
  expect(await commands([all!])).toEqual({ ...decided, del: 1 })
  expect(await commands([all!])).toEqual(decided)
})

test('A ban costs one SET, an unban costs one write, and an unban without a ban costs none.', async () => {
  const subject = newSubject()
  expect(await commands(penal(subject, 'ban'))).toEqual({ ...decided, ...write })
  await setTimeout(2) // the same ban in the same millisecond changes nothing
  expect(await commands(penal(subject, 'ban'))).toEqual({ ...decided, ...write })
  expect(await commands(penal(subject, 'unban'))).toEqual({ ...decided, del: 1 })
  expect(await commands(penal(subject, 'unban'))).toEqual(decided)
  await server.decide(penal(subject, 'take'))
  await server.decide(penal(subject, 'ban'))
  expect(await commands(penal(subject, 'unban'))).toEqual({ ...decided, ...write })
})

test('An idempotency key costs one SET, even for a refusal, and a replay costs none.', async () => {
  const subject = newSubject()
  const once = (): Idempotency => ({ key: newSubject(), fingerprint: 'f', forMs: 60_000 })
  const own = { zrange: 1, zadd: 1, pexpire: 1 }
  const calls: [ModelRequest[], first: object, replay: object][] = [
    [[request(subject)], { ...decidedMany, set: 2 }, decidedMany],
    [[request(subject, 'take', 40)], { ...decidedMany, ...write }, decidedMany],
    // A replay does not read or write the slots.
    [apart('concurrency')('take'), { ...decided, ...own, ...write }, decided],
  ]
  for (const [requests, first, replay] of calls) {
    const key = once()
    expect(await commands(requests, undefined, key)).toEqual(first)
    expect(await commands(requests, undefined, key)).toEqual(replay)
  }
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
          const { penalty: __, ...terms } = row.terms
          return { ...row, terms, subject: `${row.subject}-free` }
        }),
      }))
      const story = formatCalls(calls.slice(0, index + 1))
      expect(await commands(requests, now), story).toEqual(await commands(without, now))
    }
  },
  50,
  1,
)
