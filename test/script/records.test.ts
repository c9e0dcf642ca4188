import { expect, test } from 'vitest'
import type { ModelLimit, ModelPolicy } from '../model/model.ts'
import { useServer } from '../support/server.ts'
import { newSubject } from '../support/subjects.ts'

const server = useServer()
const now = 1_789_000_000_000

const policy: ModelPolicy = {
  tag: 'main',
  algorithm: 'fixed-window',
  limit: 3,
  windowMs: 60_000,
  burst: 1,
  align: 'first-request',
}

/** Stores a record with these states, sends a request, and returns the new record and the reply. */
async function after(stored: string, mode: 'take' | 'refund', limits = [policy], cost = 1) {
  const subject = newSubject()
  const key = `sluice:1:{${subject}}`
  if (stored) await server.send('SET', key, `1;${stored}`)
  const rows: ModelLimit[] = limits.map((policy) => ({ subject, terms: policy, cost }))
  const { states } = await server.decide([{ mode, limits: rows }], now)
  return { record: await server.send('GET', key), states: states[0]! }
}

test('A record holds its version and its states.', async () => {
  const bucket: ModelPolicy = { ...policy, tag: 'b', algorithm: 'token-bucket', burst: 2 }
  const sliding: ModelPolicy = { ...policy, tag: 's', algorithm: 'sliding-window' }
  const { record } = await after('', 'take', [policy, bucket, sliding])
  expect(record).toBe(
    '1;main:1789000000000:60000:1;b:1789000000000:20000:60000;s:1788999960000:120000:1:0;',
  )
})

test('A write copies the other live states byte by byte.', async () => {
  const others = 'a:1789000000000:0001:007;b-_9:00001789000000000:99:1:2;'
  expect((await after(others, 'take')).record).toBe(`1;${others}main:${now}:60000:1;`)
})

test('A write replaces a state in place.', async () => {
  const { record } = await after(`a:${now}:9:1;main:${now - 9}:60000:1;b:${now}:9:1;`, 'take')
  expect(record).toBe(`1;a:${now}:9:1;main:${now - 9}:60000:2;b:${now}:9:1;`)
})

test('A write drops other states from the millisecond of their run-out on.', async () => {
  const { record } = await after(`a:${now - 9}:9:1;b:${now - 9}:10:1;c:1:1:1;`, 'take')
  expect(record).toBe(`1;b:${now - 9}:10:1;main:${now}:60000:1;`)
})

test('A state that has run out is treated as absent, whatever its numbers.', async () => {
  const { record, states } = await after(`main:${now - 9}:9:3;`, 'take')
  expect(states).toMatchObject([{ allowed: true, remaining: 2 }])
  expect(record).toBe(`1;main:${now}:60000:1;`)
})

test('A refund that makes a quota full removes the state.', async () => {
  expect((await after(`a:${now}:9:1;main:${now}:60000:1;`, 'refund')).record).toBe(
    `1;a:${now}:9:1;`,
  )
})

test('A refund that fills a token bucket removes its state, even if the clock is behind the state.', async () => {
  const bucket: ModelPolicy = { ...policy, algorithm: 'token-bucket' }
  expect((await after(`main:${now + 1}:20000:60000;`, 'refund', [bucket])).record).toBe(null)
})

test('A record without states is deleted.', async () => {
  expect((await after(`main:${now}:60000:1;`, 'refund')).record).toBe(null)
  expect((await after(`a:${now - 9}:9:1;main:${now}:60000:1;`, 'refund')).record).toBe(null)
})

test('Tags that share a prefix or contain Lua pattern characters are different tags.', async () => {
  const others = `mai:${now}:9:3;main-:${now}:9:3;-main:${now}:9:3;m-in:${now}:9:3;`
  const { states, record } = await after(others, 'take')
  expect(states).toMatchObject([{ allowed: true, remaining: 2 }])
  expect(record).toBe(`1;${others}main:${now}:60000:1;`)
})

test('Large numbers are stored exactly.', async () => {
  const large: ModelPolicy = {
    ...policy,
    algorithm: 'token-bucket',
    limit: 1,
    windowMs: 1,
    burst: 2 ** 51,
  }
  const { record, states } = await after('', 'take', [large], 2 ** 51 - 1)
  expect(record).toBe('1;main:1789000000000:2251799813685247:2251799813685247;')
  expect(states[0]!.resetAfterMs).toBe(2_251_799_813_685_247)
})
