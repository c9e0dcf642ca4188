import { expect, test } from 'vitest'
import type { ModelLimit, ModelPolicy } from '../model/model.ts'
import { useServer } from '../support/server.ts'
import { newSubject } from '../support/subjects.ts'

const server = useServer()
const now = 1_789_000_000_000

const policy: ModelPolicy = {
  tag: 'mine',
  algorithm: 'fixed-window',
  limit: 3,
  windowMs: 60_000,
  burst: 1,
  align: 'first-request',
}

/** Stores a record with these states and sends a request for it. */
async function after(stored: string, mode: 'take' | 'refund', limits = [policy], cost = 1) {
  const subject = newSubject()
  const key = `sluice:1:{${subject}}`
  if (stored) await server.send('SET', key, `1;${stored}`)
  const asked: ModelLimit[] = limits.map((policy) => ({ subject, terms: policy, cost }))
  const { states } = await server.decide([{ mode, limits: asked }], now)
  return { record: await server.send('GET', key), states: states[0]! }
}

test('a record holds its version and its states', async () => {
  const bucket: ModelPolicy = { ...policy, tag: 'b', algorithm: 'token-bucket', burst: 2 }
  const sliding: ModelPolicy = { ...policy, tag: 's', algorithm: 'sliding-window' }
  const { record } = await after('', 'take', [policy, bucket, sliding])
  expect(record).toBe(
    '1;mine:1789000000000:60000:1;b:1789000000000:20000:60000;s:1788999960000:120000:1:0;',
  )
})

test('a write copies the other live states byte by byte', async () => {
  const others = 'a:1789000000000:0001:007;b-_9:00001789000000000:99:1:2;'
  expect((await after(others, 'take')).record).toBe(`1;${others}mine:${now}:60000:1;`)
})

test('a write changes its own state in place', async () => {
  const { record } = await after(`a:${now}:9:1;mine:${now - 9}:60000:1;b:${now}:9:1;`, 'take')
  expect(record).toBe(`1;a:${now}:9:1;mine:${now - 9}:60000:2;b:${now}:9:1;`)
})

test('a write drops other states from the millisecond of their run-out on', async () => {
  const { record } = await after(`a:${now - 9}:9:1;b:${now - 9}:10:1;c:1:1:1;`, 'take')
  expect(record).toBe(`1;b:${now - 9}:10:1;mine:${now}:60000:1;`)
})

test('a state that has run out is absent, whatever its numbers', async () => {
  const { record, states } = await after(`mine:${now - 9}:9:3;`, 'take')
  expect(states).toMatchObject([{ allowed: true, remaining: 2 }])
  expect(record).toBe(`1;mine:${now}:60000:1;`)
})

test('a state that is full again is removed', async () => {
  expect((await after(`a:${now}:9:1;mine:${now}:60000:1;`, 'refund')).record).toBe(
    `1;a:${now}:9:1;`,
  )
})

test('a token bucket that a refund fills is removed while the clock is behind it', async () => {
  const bucket: ModelPolicy = { ...policy, algorithm: 'token-bucket' }
  expect((await after(`mine:${now + 1}:20000:60000;`, 'refund', [bucket])).record).toBe(null)
})

test('a record without states is deleted', async () => {
  expect((await after(`mine:${now}:60000:1;`, 'refund')).record).toBe(null)
  expect((await after(`a:${now - 9}:9:1;mine:${now}:60000:1;`, 'refund')).record).toBe(null)
})

test('a tag with the same beginning as another, or with pattern characters, is a different tag', async () => {
  const others = `min:${now}:9:3;mine-:${now}:9:3;-mine:${now}:9:3;m-ne:${now}:9:3;`
  const { states, record } = await after(others, 'take')
  expect(states).toMatchObject([{ allowed: true, remaining: 2 }])
  expect(record).toBe(`1;${others}mine:${now}:60000:1;`)
})

test('large numbers are stored to the last digit', async () => {
  const large: ModelPolicy = {
    ...policy,
    algorithm: 'token-bucket',
    limit: 1,
    windowMs: 1,
    burst: 2 ** 51,
  }
  const { record, states } = await after('', 'take', [large], 2 ** 51 - 1)
  expect(record).toBe('1;mine:1789000000000:2251799813685247:2251799813685247;')
  expect(states[0]!.resetAfterMs).toBe(2_251_799_813_685_247)
})
