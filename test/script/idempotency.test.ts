import { expect, test } from 'vitest'
import type { Idempotency, StoreReply } from '../../src/core/connection/store.ts'
import { type ModelPolicy, type ModelRequest, recordOf } from '../model/model.ts'
import { start as now, policyOf } from '../support/ask.ts'
import { law, lawRuns } from '../support/law.ts'
import { formatCalls, runOnOracle } from '../support/run-on-oracle.ts'
import { useServer } from '../support/server.ts'
import { snapshot } from '../support/stored-state.ts'
import { newSubject } from '../support/subjects.ts'

const server = useServer()
const most = 2 ** 51

const policy = policyOf({ limit: 100, windowMs: 60_000, burst: 100 })
const take = (subject: string, changed: Partial<ModelPolicy> = {}): ModelRequest => ({
  mode: 'take',
  limits: [{ subject, terms: { ...policy, ...changed }, cost: 1 }],
})
const idempotencyOf = (changed: Partial<Idempotency> = {}): Idempotency => ({
  key: newSubject(),
  fingerprint: 'f',
  forMs: 60_000,
  ...changed,
})

/** Returns the reply, or the error message. */
const outcome = (requests: ModelRequest[], time: number, idempotency?: Idempotency) =>
  server.decide(requests, time, idempotency).catch(({ message }) => String(message))

/** Returns every key of these subjects, with its bytes and its expiry. */
async function everything(subjects: string[]) {
  const all = (await server.send('KEYS', 'sluice:1:*')) as string[]
  const keys = all.filter((key) => subjects.some((subject) => key.includes(`{${subject}}`))).sort()
  return [keys, await snapshot(server, keys)]
}

law(
  'A replay returns the same integers for as long as they are remembered, and changes no key.',
  async (plan) => {
    const { calls, subjects } = runOnOracle(plan)
    const idempotencies = calls.map(() => idempotencyOf({ forMs: 1000 }))
    const first: unknown[] = []
    for (const [index, { requests, now }] of calls.entries()) {
      first.push(await outcome(requests, now, idempotencies[index]))
    }
    const names = [...subjects, ...idempotencies.map(({ key }) => key)]
    const before = await everything(names)
    for (const [index, { requests, now }] of calls.entries()) {
      const story = formatCalls(calls.slice(0, index + 1))
      expect(first[index], story).not.toHaveProperty('replayed')
      const times = [now, now + 999, 0].filter((time) => time <= most)
      for (const time of times) {
        const again = await outcome(requests, time, idempotencies[index])
        expect(again, story).toEqual({ ...(first[index] as StoreReply), replayed: true })
      }
    }
    expect(await everything(names)).toEqual(before)
  },
  { single: { penalties: true, operators: true }, mixed: { penalties: true, operators: true } },
  Math.ceil(lawRuns / 20),
)

law(
  'An idempotency key changes no reply and no other key.',
  async (plan) => {
    const { calls, replies } = runOnOracle(plan)
    const answers = await Promise.all(
      calls.map(({ requests, now }) => outcome(requests, now, idempotencyOf())),
    )
    expect(answers, formatCalls(calls)).toEqual(replies)
  },
  { single: { penalties: true }, mixed: { penalties: true } },
  Math.ceil(lawRuns / 20),
)

test('Fifty concurrent calls with one idempotency key are charged once.', async () => {
  const [subject, idempotency] = [newSubject(), idempotencyOf()]
  const replies = await Promise.all(
    Array.from({ length: 50 }, () => server.decide([take(subject)], undefined, idempotency)),
  )
  expect(replies.filter(({ replayed }) => !replayed)).toHaveLength(1)
  expect(new Set(replies.map(({ states }) => states[0]![0]!.remaining))).toEqual(new Set([99]))
  const peek: ModelRequest = { ...take(subject), mode: 'peek' }
  expect((await server.decide([peek])).states[0]![0]).toMatchObject({ remaining: 99 })
})

test('A repeated call is decided again as soon as its reply is forgotten, and not a millisecond earlier.', async () => {
  const [subject, idempotency] = [newSubject(), idempotencyOf({ forMs: 1000 })]
  const remainingAt = async (time: number) => {
    const reply = await outcome([take(subject)], time, idempotency)
    return typeof reply === 'string' ? reply : reply.states[0]![0]!.remaining
  }
  expect([await remainingAt(now), await remainingAt(now + 999)]).toEqual([99, 99])
  expect(await remainingAt(now + 1000)).toBe(98)
  expect(await remainingAt(now + 1999)).toBe(98)
  expect(await remainingAt(now + 2000)).toBe(97)
})

test('The stored reply expires after forMs, or a minute later if the call sends the time.', async () => {
  const withTime = idempotencyOf({ forMs: 5000 })
  await server.decide([take(newSubject())], now, withTime)
  const withoutTime = idempotencyOf({ forMs: 5000 })
  await server.decide([take(newSubject())], undefined, withoutTime)
  const [long, short] = await Promise.all([
    server.send('PTTL', recordOf(withTime.key)),
    server.send('PTTL', recordOf(withoutTime.key)),
  ])
  expect(Number(long)).toBeGreaterThan(60_000)
  expect(Number(long)).toBeLessThanOrEqual(65_000)
  expect(Number(short)).toBeGreaterThan(0)
  expect(Number(short)).toBeLessThanOrEqual(5000)
})

test('A refusal is replayed even if there is room again.', async () => {
  const [subject, idempotency] = [newSubject(), idempotencyOf({ forMs: 100_000 })]
  const many: ModelRequest = { mode: 'take', limits: [{ subject, terms: policy, cost: 100 }] }
  await server.decide([many], now)
  const refused = await server.decide([take(subject)], now, idempotency)
  expect(refused.states[0]![0]).toMatchObject({ allowed: false, retryAfterMs: 60_000 })
  const again = await server.decide([take(subject)], now + 60_000, idempotency)
  expect(again).toEqual({ ...refused, replayed: true })
})

test('A replay takes no slots, even if the original slots have been released.', async () => {
  const [subject, idempotency] = [newSubject(), idempotencyOf()]
  const row = { ...take(subject, { algorithm: 'concurrency' }).limits[0]!, slot: 'a' }
  await server.decide([{ mode: 'take', limits: [row] }], now, idempotency)
  await server.decide([{ mode: 'refund', limits: [row] }], now)
  const again = await server.decide([{ mode: 'take', limits: [row] }], now, idempotency)
  expect(again).toMatchObject({ replayed: true, states: [[{ allowed: true, remaining: 99 }]] })
  const { states } = await server.decide([{ mode: 'peek', limits: [row] }], now)
  expect(states[0]![0]!.remaining).toBe(100)
})

const conflict = 'ERR sluice: idempotency: used for another call'

test('A used idempotency key with another fingerprint or another number of requests is refused and writes nothing.', async () => {
  const [subject, idempotency] = [newSubject(), idempotencyOf()]
  await server.decide([take(subject)], now, idempotency)
  const before = await everything([subject, idempotency.key])
  const other = { ...idempotency, fingerprint: 'g' }
  expect(String(await outcome([take(subject)], now, other))).toMatch(conflict)
  const two = [take(subject), take(newSubject())]
  expect(String(await outcome(two, now, idempotency))).toMatch(conflict)
  expect(await everything([subject, idempotency.key])).toEqual(before)
})

const other = /^ERR sluice: idempotency: its key holds something else/

test.each([
  'text',
  '',
  '1;t:1789000000000:60000:1;',
  'idem2;f:1:',
  'idem2;f:x:1 +;',
  'idem2;f:9789000000000:1 +;|',
  // The reply of a call that version 1 of the script has decided.
  'idem;f:9789000000000:1,0,0,0,0,0,1,9,0,1000,1000',
])('An idempotency key that holds the foreign value %j is refused and keeps it.', async (text) => {
  const [subject, idempotency] = [newSubject(), idempotencyOf()]
  await server.send('SET', recordOf(idempotency.key), text)
  expect(String(await outcome([take(subject)], now, idempotency))).toMatch(other)
  expect(await server.send('GET', recordOf(idempotency.key))).toBe(text)
  expect(await server.send('EXISTS', recordOf(subject))).toBe(0)
})

test('A stored reply with malformed states is no reply.', async () => {
  const [subject, idempotency] = [newSubject(), idempotencyOf()]
  const text = 'idem2;f:9789000000000:1 +1:,-;'
  await server.send('SET', recordOf(idempotency.key), text)
  expect(String(await outcome([take(subject)], now, idempotency))).toMatch(/violates its contract/)
})

test('An idempotency key of another Redis type is refused and kept, and no record is charged.', async () => {
  const [subject, idempotency] = [newSubject(), idempotencyOf()]
  await server.send('RPUSH', recordOf(idempotency.key), 'a')
  expect(String(await outcome([take(subject)], now, idempotency))).toMatch(other)
  expect(await server.send('LLEN', recordOf(idempotency.key))).toBe(1)
  expect(await server.send('EXISTS', recordOf(subject))).toBe(0)
})

test('A stored reply is refused as a record.', async () => {
  const idempotency = idempotencyOf()
  await server.decide([take(newSubject())], now, idempotency)
  expect(String(await outcome([take(idempotency.key)], now))).toMatch(/^ERR sluice: key 1 holds/)
})

test('A replay returns the exact numbers, however large they are.', async () => {
  for (const size of [2 ** 31, 2 ** 33 + 1, most - 1, most]) {
    const [subject, idempotency] = [newSubject(), idempotencyOf({ forMs: most })]
    const bucket = { tag: 'u', algorithm: 'token-bucket', limit: 1, burst: 1 } as const
    const requests = [
      take(subject, { limit: size, windowMs: 1 }),
      take(subject, { ...bucket, windowMs: size }),
    ]
    const first = await server.decide(requests, 0, idempotency)
    expect(await outcome(requests, 0, idempotency)).toEqual({ ...first, replayed: true })
  }
})
