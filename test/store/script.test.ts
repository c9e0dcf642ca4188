import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { parseConfig } from '../../src/policy.ts'
import { decode, encode, script, scriptSha } from '../../src/store/script.ts'
import type { StoreRequest } from '../../src/store/store.ts'

const [policy] = parseConfig({ policies: [{ name: 'a', limit: 5, window: '10s' }] }).policies
const take = (...subjects: string[]): StoreRequest => ({
  mode: 'take',
  rows: subjects.map((subject) => ({ subject, policy: policy!, cost: 1 })),
})

test('the first bytes of the script are the flag, or Upstash would not see it', () => {
  expect(script.startsWith('#!lua flags=allow-key-locking\n')).toBe(true)
})

test('the script keeps no comment lines and no indentation', () => {
  expect(
    script
      .split('\n')
      .slice(1)
      .filter((line) => /^\s*(--.*)?$|^\s/.test(line)),
  ).toEqual([''])
})

test('the SHA-1 is that of the bytes sent', async () => {
  expect(await scriptSha()).toBe(createHash('sha1').update(script).digest('hex'))
})

test('one key per subject, however many rows and requests name it', () => {
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
  ['strings for numbers', ['1', '1', '4', '0', '10', '10']],
  ['a fraction', [1, 1, 4, 0, 10, 0.5]],
])('a reply that is %s is none of the script', (_, reply) => {
  expect(decode(reply, [take('x')])).toBeUndefined()
})

test('a reply is read row by row', () => {
  expect(decode([99, 1, 4, 0, 10, 5, 0, 0, -1, 7, 7], [take('x'), take('y')])).toEqual({
    now: 99,
    requests: [
      [{ allowed: true, remaining: 4, retryAfterMs: 0, resetAfterMs: 10, nextAfterMs: 5 }],
      [{ allowed: false, remaining: 0, retryAfterMs: null, resetAfterMs: 7, nextAfterMs: 7 }],
    ],
  })
})
