import { expect, test } from 'vitest'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import type { Limit, StoreRequest } from '../../../../src/core/connection/store.ts'
import { keysOf } from '../../../../src/core/connection/upstash/script.ts'
import { encode } from '../../../support/coding.ts'

const [policy] = parseConfig({ policies: [{ name: 'a', limit: 5, window: '10s' }] }).policies
const take = (...subjects: string[]): StoreRequest => ({
  mode: 'take',
  limits: subjects.map((subject) => ({ subject, terms: policy!, cost: 1 })),
})

test('A subject has one key, however many limits and requests use it.', () => {
  const { keys, args } = encode([take('x', 'y'), take('y')], 7)
  expect(keys).toEqual(['sluice:1:{x}', 'sluice:1:{y}'])
  const limit = `;${policy!.tag}:sliding,5,10000,,1`
  expect(args).toEqual(['3::7', `take 1${limit} 2${limit}`, `take 2${limit}`])
})

const penalty = { tag: 'p', after: 3, withinMs: 1000, banMs: 60_000, maxMs: 600_000 }
const rowOf = (changed: Partial<Limit>): Limit => ({
  subject: 'x',
  terms: policy!,
  cost: 1,
  ...changed,
})
const algorithm = (name: Limit['terms']['algorithm']) => ({ ...policy!, algorithm: name })

test('A penalty follows its limit and uses the record of the subject.', () => {
  const penal = ';p:penalty,3,1000,60000,600000'
  const { keys, args } = encode([{ mode: 'take', limits: [rowOf({ penalty })] }], 7)
  expect(keys).toEqual(['sluice:1:{x}'])
  expect(args).toEqual(['3:special:7', `take 1;${policy!.tag}:sliding,5,10000,,1 1${penal}`])

  const log = encode([
    { mode: 'follow', limits: [rowOf({ penalty, terms: algorithm('sliding-log') })] },
  ])
  expect(log.keys).toEqual(['sluice:1:{x}', `sluice:1:{x}:log:${policy!.tag}`])
  expect(log.args).toEqual(['3:special:', `follow 2;${policy!.tag}:log,5,10000,,1 1${penal}`])
})

test('The limit of an operator precedes its limit and uses the record of the subject.', () => {
  const limit = rowOf({
    override: { share: 0.5, scalesBurst: true },
    terms: algorithm('sliding-log'),
  })
  const { tag } = policy!
  expect(encode([{ mode: 'take', limits: [limit] }], 7)).toEqual({
    keys: ['sluice:1:{x}', `sluice:1:{x}:log:${tag}`],
    args: ['3:special:7', `take 1;${tag}-limit:override,0.5,1,,0 2;${tag}:log,5,10000,,1`],
  })
  expect(encode([{ mode: 'take', limits: [{ ...limit, terms: policy! }] }]).args[0]).toBe(
    '3:special:',
  )
})

test('A refund has its decidedAt and no penalty.', () => {
  const request: StoreRequest = { mode: 'refund', limits: [rowOf({ penalty })], decidedAt: 5 }
  const limit = `1;${policy!.tag}:sliding,5,10000,,1`
  expect(encode([request], 7).args[1]).toBe(`refund@5 ${limit}`)
  expect(encode([{ ...request, decidedAt: 0 }], 7).args[1]).toBe(`refund@0 ${limit}`)
  const { decidedAt: _, ...without } = request
  expect(encode([without], 7).args[1]).toBe(`refund ${limit}`)
  const take = { mode: 'take', limits: [rowOf({})], decidedAt: 5 } as StoreRequest
  expect(encode([take], 7).args[1]).toBe(`take ${limit}`)
})

test('A refund to a bucket has at most as many units as are exact in a product with the window.', () => {
  const refund = (name: Parameters<typeof algorithm>[0], windowMs: number, cost: number) => {
    const terms = { ...algorithm(name), windowMs, limit: 1, burst: 1 }
    const limits = [rowOf({ cost, terms })]
    return encode([{ mode: 'refund', limits }]).args[1]!.replace(/.*,/, '')
  }
  const most = Math.floor((2 ** 53 - 1) / 11)
  const units = [most - 1, most + 1, 2 ** 51].map((cost) => refund('token-bucket', 11, cost))
  expect(units).toEqual([`${most - 1}`, `${most}`, `${most}`])
  // Debts may have added more entries to a log than a bucket can owe.
  expect(refund('sliding-log', 2 ** 51, 5)).toBe('5')
})

test('The option of a limit is the burst, the alignment, the calendar period or the slot id, depending on the algorithm.', () => {
  const option = (row: Limit, mode: Exclude<StoreRequest['mode'], 'override'> = 'take') =>
    encode([{ mode, limits: [row] }], 7)
      .args[1]!.split(',')
      .at(-2)
  expect(option(rowOf({ terms: algorithm('fixed-window'), period: [1, 2, 4] }))).toBe('1/2/4')
  expect(option(rowOf({ terms: algorithm('fixed-window') }))).toBe('')
  const clock = { ...algorithm('fixed-window'), align: 'clock' as const }
  expect(option(rowOf({ terms: clock }))).toBe('clock')
  expect(option(rowOf({ terms: algorithm('token-bucket'), period: [1, 2, 4] }))).toBe('5')
  const slots = { terms: algorithm('concurrency') }
  expect(option(rowOf({ ...slots, slot: 'id' }), 'refund')).toBe('id')
  expect(option(rowOf(slots), 'peek')).toBe('')
  const { keys } = encode([{ mode: 'take', limits: [rowOf({ ...slots, slot: 'id' })] }])
  expect(keys).toEqual([`sluice:1:{x}:slots:${policy!.tag}`])
})

test('The header names the features beyond limits in records.', () => {
  const header = (...limits: Limit[]) => encode([{ mode: 'take', limits }]).args[0]
  expect(header(rowOf({}), rowOf({ subject: 'y' }))).toBe('3::')
  expect(header(rowOf({}), rowOf({ terms: algorithm('sliding-log') }))).toBe('3:special:')
  expect(header(rowOf({ terms: algorithm('concurrency'), slot: 'a' }))).toBe('3:special:')
  expect(header(rowOf({ penalty }))).toBe('3:special:')
  for (const mode of ['reset', 'unban'] as const) {
    expect(encode([take('x'), { mode, limits: [rowOf({})] }], 7).args[0]).toBe('3:special:7')
  }
})

test('Only a ban request replaces the length of the first ban.', () => {
  const banMs = (request: { mode?: 'unban'; banMs?: number }) =>
    encode([{ mode: 'ban', limits: [rowOf({ penalty })], ...request } as StoreRequest], 7)
      .args[1]!.split(',')
      .at(-2)
  expect(banMs({ banMs: 5 })).toBe('5')
  expect(banMs({})).toBe('60000')
  expect(banMs({ mode: 'unban', banMs: 5 })).toBe('60000')
})

const idempotency = { key: 'k', fingerprint: 'f', forMs: 9 }

test('An idempotency key has the first key and an argument before the requests.', () => {
  const { keys, args } = encode([take('x')], 7, idempotency)
  expect(keys).toEqual(['sluice:1:{k}', 'sluice:1:{x}'])
  expect(args).toEqual(['3:idempotency:7', 'f:9', `take 2;${policy!.tag}:sliding,5,10000,,1`])
})

test('A namespace becomes a part of every key, and changes no argument.', () => {
  const limits = (['token-bucket', 'sliding-log', 'concurrency'] as const).map((name, index) =>
    rowOf({
      penalty: { ...penalty, tag: `p${index}` },
      terms: algorithm(name),
      slot: 'id',
    }),
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
    expect(keysOf(requests)).toEqual(encode(requests).keys)
  }
})
