import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { parseConfig } from '../../../src/config/parse.ts'
import type { Limit, StoreRequest } from '../../../src/store/store.ts'
import { decode, encode, keysOf } from '../../../src/store/upstash/script.ts'
import { script, scriptSha } from '../../../src/store/upstash/script-text.ts'

const [policy] = parseConfig({ policies: [{ name: 'a', limit: 5, window: '10s' }] }).policies
const take = (...subjects: string[]): StoreRequest => ({
  mode: 'take',
  limits: subjects.map((subject) => ({ subject, terms: policy!, cost: 1 })),
})

test('The script begins with the flag for Upstash.', () => {
  expect(script.startsWith('#!lua flags=allow-key-locking\n')).toBe(true)
})

test('The script has no comment lines and no indentation.', () => {
  expect(
    script
      .split('\n')
      .slice(1)
      .filter((line) => /^\s*(--.*)?$|^\s/.test(line)),
  ).toEqual([''])
})

test('The SHA-1 is the hash of the script that is sent.', async () => {
  expect(await scriptSha()).toBe(createHash('sha1').update(script).digest('hex'))
})

test('A subject has one key, however many limits and requests use it.', () => {
  const { keys, args } = encode([take('x', 'y'), take('y')], 7)
  expect(keys).toEqual(['sluice:1:{x}', 'sluice:1:{y}'])
  const { tag } = policy!
  const rest = [tag, 'sliding-window', '5', '10000', '5', '1', 'first-request', '']
  expect(args).toEqual([
    '7',
    '1',
    'take',
    '1',
    ...rest,
    '1',
    'take',
    '2',
    ...rest,
    '2',
    'take',
    '2',
    ...rest,
  ])
})

test.each([
  ['null', null],
  ['a string', 'OK'],
  ['too short', [1, 1, 4, 0, 10, 10, 1]],
  ['too long', [1, 1, 4, 0, 10, 10, 1, 1]],
  ['an array of strings', ['1', '1', '4', '0', '10', '10']],
  ['an array with a fraction', [1, 1, 4, 0, 10, 0.5]],
])('A reply that is %s is not accepted.', (_, reply) => {
  expect(decode(reply, [take('x')])).toBeUndefined()
})

const penalty = { tag: 'p', after: 3, withinMs: 1000, banMs: 60_000, maxMs: 600_000 }
const rowOf = (changed: Partial<Limit>): Limit => ({
  subject: 'x',
  terms: policy!,
  cost: 1,
  ...changed,
})
const algorithm = (name: Limit['terms']['algorithm']) => ({ ...policy!, algorithm: name })

test('A penalty adds a row on the record of the subject.', () => {
  const penal = ['p', 'penalty', '3', '1000', '60000', '600000', 'first-request', '']
  const { keys, args } = encode([{ mode: 'take', limits: [rowOf({ penalty })] }], 7)
  expect(keys).toEqual(['sluice:1:{x}'])
  expect(args.slice(12)).toEqual(['1', 'take', '1', ...penal])

  const log = encode([
    { mode: 'follow', limits: [rowOf({ penalty, terms: algorithm('sliding-log') })] },
  ])
  expect(log.keys).toEqual([`sluice:1:{x}:log:${policy!.tag}`, 'sluice:1:{x}'])
  expect(log.args.slice(12)).toEqual(['1', 'follow', '2', ...penal])
})

test('A refund has no row for a penalty.', () => {
  const request: StoreRequest = { mode: 'refund', limits: [rowOf({ penalty })] }
  expect(encode([request], 7).args).toHaveLength(12)
  expect(decode([7, 1, 4, 0, 10, 10], [request])?.states[0]).toHaveLength(1)
})

test('Column 10 has the alignment, the calendar period or the slot id, depending on the algorithm.', () => {
  const column10 = (row: Limit, mode: StoreRequest['mode'] = 'take') =>
    encode([{ mode, limits: [row] }], 7).args[10]
  expect(column10(rowOf({ terms: algorithm('fixed-window'), period: [1, 2, 4] }))).toBe('1,2,4')
  expect(column10(rowOf({ terms: algorithm('token-bucket'), period: [1, 2, 4] }))).toBe(
    'first-request',
  )
  const slots = { terms: algorithm('concurrency') }
  expect(column10(rowOf({ ...slots, slot: 'id' }), 'refund')).toBe('id')
  expect(column10(rowOf(slots), 'peek')).toBe('')
  const { keys } = encode([{ mode: 'take', limits: [rowOf({ ...slots, slot: 'id' })] }])
  expect(keys).toEqual([`sluice:1:{x}:slots:${policy!.tag}`])
})

test('A ban refuses its limit, and the longer wait applies. The wait stays null if the cost can never fit.', () => {
  const read = (...numbers: number[]) =>
    decode([99, ...numbers], [{ mode: 'take', limits: [rowOf({ penalty })] }])!.states[0]![0]
  const rest = { remaining: 4, resetAfterMs: 10, nextAfterMs: 5 }
  const free = read(1, 4, 0, 10, 5, 1, 0, 0, 0, 0)
  expect(free).toEqual({ ...rest, allowed: true, retryAfterMs: 0 })
  expect(free).not.toHaveProperty('bannedForMs')
  const banned = { ...rest, allowed: false, bannedForMs: 7 }
  expect(read(1, 4, 0, 10, 5, 0, 0, 7, 0, 0)).toEqual({ ...banned, retryAfterMs: 7 })
  expect(read(0, 4, 9, 10, 5, 0, 0, 7, 0, 0)).toEqual({ ...banned, retryAfterMs: 9 })
  expect(read(0, 4, -1, 10, 5, 0, 0, 7, 0, 0)).toEqual({ ...banned, retryAfterMs: null })
})

test('A reply is decoded row by row.', () => {
  expect(decode([99, 1, 4, 0, 10, 5, 0, 0, -1, 7, 7], [take('x'), take('y')])).toEqual({
    decidedAt: 99,
    states: [
      [{ allowed: true, remaining: 4, retryAfterMs: 0, resetAfterMs: 10, nextAfterMs: 5 }],
      [{ allowed: false, remaining: 0, retryAfterMs: null, resetAfterMs: 7, nextAfterMs: 7 }],
    ],
  })
})

test('Only a ban request replaces the length of the first ban.', () => {
  const burst = (request: { mode?: 'unban'; banMs?: number }) =>
    encode([{ mode: 'ban', limits: [rowOf({ penalty })], ...request } as StoreRequest], 7).args[19]
  expect(burst({ banMs: 5 })).toBe('5')
  expect(burst({})).toBe('60000')
  expect(burst({ mode: 'unban', banMs: 5 })).toBe('60000')
})

const idempotency = { key: 'k', fingerprint: 'f', forMs: 9 }

test('An idempotency key adds a first row, with the first key.', () => {
  const { keys, args } = encode([take('x')], 7, idempotency)
  expect(keys).toEqual(['sluice:1:{k}', 'sluice:1:{x}'])
  expect(args.slice(0, 12)).toEqual([
    '7',
    '0',
    'idempotency',
    '1',
    'f',
    'idempotency',
    '',
    '9',
    '',
    '',
    '',
    '',
  ])
  expect(args.slice(12)).toEqual(
    encode([take('x')], 7)
      .args.slice(1)
      .with(2, '2'), // the same row, with another key index
  )
})

test('The first number of the idempotency row marks a replay.', () => {
  const read = (...row: number[]) => decode([99, ...row, 1, 4, 0, 10, 5], [take('x')], idempotency)
  const first = read(0, 0, 0, 0, 0)!
  expect(first.states[0]![0]).toMatchObject({ allowed: true, remaining: 4 })
  expect(first).not.toHaveProperty('replayed')
  expect(read(1, 0, 0, 0, 0)).toEqual({ ...first, replayed: true })
  expect(read()).toBeUndefined()
})

test('A namespace becomes a part of every key, and changes no argument.', () => {
  const limits = (['token-bucket', 'sliding-log', 'concurrency'] as const).map((name) =>
    rowOf({ penalty, terms: algorithm(name), slot: 'id' }),
  )
  const requests: StoreRequest[] = [{ mode: 'take', limits: limits }]
  const plain = encode(requests, 7, idempotency)
  const shop = encode(requests, 7, idempotency, 'shop')
  expect(shop.args).toEqual(plain.args)
  const prefix = 'sluice:1:'
  expect(plain.keys.every((key) => key.startsWith(`${prefix}{`))).toBe(true)
  expect(shop.keys).toEqual(plain.keys.map((key) => `${prefix}shop:${key.slice(prefix.length)}`))
})

test('keysOf returns the same keys as encode.', () => {
  const limits = (['token-bucket', 'sliding-log', 'concurrency'] as const).map((name) =>
    rowOf({ penalty, subject: name, terms: algorithm(name), slot: 'id' }),
  )
  for (const mode of ['take', 'refund', 'reset', 'ban'] as const) {
    const requests: StoreRequest[] = [{ mode, limits: limits }, take('x', 'token-bucket')]
    expect([...keysOf(requests)]).toEqual(encode(requests).keys)
  }
})
