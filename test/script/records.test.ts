import { expect, test } from 'vitest'
import { keyOf } from '../model/model.ts'
import { ask, start as now, policyOf, rowOf } from '../support/ask.ts'
import { useServer } from '../support/server.ts'
import { newSubject } from '../support/subjects.ts'

const server = useServer()
const policy = policyOf({ tag: 'main', limit: 3, windowMs: 60_000, burst: 1 })

/** Stores a record with these states, sends a request, and returns the new record and the reply. */
async function after(stored: string, mode: 'take' | 'refund', limits = [policy], cost = 1) {
  const subject = newSubject()
  const key = `sluice:1:{${subject}}`
  if (stored) await server.send('SET', key, `1;${stored}`)
  const rows = limits.map((terms) => ({ subject, terms, cost }))
  const { states } = await server.decide([{ mode, limits: rows }], now)
  return { record: await server.send('GET', key), states: states[0]! }
}

test('A record holds its version and its states.', async () => {
  const bucket = policyOf({ ...policy, tag: 'b', algorithm: 'token-bucket', burst: 2 })
  const sliding = policyOf({ ...policy, tag: 's', algorithm: 'sliding-window' })
  const { record } = await after('', 'take', [policy, bucket, sliding])
  expect(record).toBe(
    '1;main:1789000000000:60000:1;b:1789000000000:20000:60000;s:1788999960000:120000:1:0;',
  )
})

const [a, b] = [`a:${now}:9:1;`, `b:${now}:9:1;`]
const odd = 'a:1789000000000:0001:007;b-_9:00001789000000000:99:1:2;'
const similar = `mai:${now}:9:3;main-:${now}:9:3;-main:${now}:9:3;m-in:${now}:9:3;`
const fresh = `main:${now}:60000:1;`

const writes: [claim: string, mode: 'take' | 'refund', before: string, after: string | null][] = [
  ['A write copies the other live states byte by byte.', 'take', odd, `${odd}${fresh}`],
  [
    'A write replaces a state in place.',
    'take',
    `${a}main:${now - 9}:60000:1;${b}`,
    `${a}main:${now - 9}:60000:2;${b}`,
  ],
  [
    'A write drops other states from the millisecond of their run-out on.',
    'take',
    `a:${now - 9}:9:1;b:${now - 9}:10:1;c:1:1:1;`,
    `b:${now - 9}:10:1;${fresh}`,
  ],
  [
    'A state that has run out is treated as absent, whatever its numbers.',
    'take',
    `main:${now - 9}:9:3;`,
    fresh,
  ],
  [
    'Tags that share a prefix or contain Lua pattern characters are different tags.',
    'take',
    similar,
    `${similar}${fresh}`,
  ],
  ['A refund that makes a quota full removes the state.', 'refund', `${a}${fresh}`, a],
  ['A record without states is deleted.', 'refund', fresh, null],
  ['A record whose states have run out is deleted.', 'refund', `a:1:9:1;${fresh}`, null],
]

test.each(writes)('%s', async (_, mode, before, expected) => {
  const { record, states } = await after(before, mode)
  expect(record).toBe(expected && `1;${expected}`)
  expect(states).toMatchObject([{ allowed: true }])
})

test('A refund that fills a token bucket removes its state, even if the clock is behind the state.', async () => {
  const bucket = policyOf({ ...policy, algorithm: 'token-bucket' })
  expect((await after(`main:${now + 1}:20000:60000;`, 'refund', [bucket])).record).toBe(null)
})

test('Large numbers are stored exactly.', async () => {
  const most = { algorithm: 'token-bucket', limit: 1, windowMs: 1, burst: 2 ** 51 } as const
  const { record, states } = await after(
    '',
    'take',
    [policyOf({ ...most, tag: 'main' })],
    2 ** 51 - 1,
  )
  expect(record).toBe('1;main:1789000000000:2251799813685247:2251799813685247;')
  expect(states[0]!.resetAfterMs).toBe(2_251_799_813_685_247)
})

test('The record of ten units needs at most 8 bytes more than that of one.', async () => {
  const row = rowOf()
  const size = () => server.send('MEMORY', 'USAGE', keyOf(row)).then(Number)
  await ask(server, 'take', row, now)
  const one = await size()
  expect(await ask(server, 'take', { ...row, cost: 9 }, now)).toMatchObject({ remaining: 0 })
  expect((await size()) - one).toBeLessThanOrEqual(8)
})
