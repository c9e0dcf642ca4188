/** Which calls a compiled script decides, and what they send. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { script } from '../../../../cli/replay/decide/script-parts.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import type { Limit, StoreRequest, Terms } from '../../../../src/core/connection/store.ts'
import { compiledCalls } from '../../../../src/core/connection/upstash/sets.ts'
import { anyText } from '../../../support/any-text.ts'
import { policy } from '../../../support/many-lists.ts'

const other: Terms = { ...policy, tag: 'u', algorithm: 'token-bucket' }
const limit = (more: Partial<Limit> = {}): Limit => ({
  subject: 'x',
  terms: policy,
  cost: 1,
  ...more,
})
const take = (...limits: Partial<Limit>[]) =>
  ({ mode: 'take', limits: limits.map(limit) }) as StoreRequest
const period: Limit['period'] = [1, 2, 4]

test('A set with costs of one unit sends its key alone.', () => {
  const callOf = compiledCalls()
  const { script, keys, args } = callOf([take({}, { terms: other })])!
  expect([keys, args]).toEqual([['sluice:1:{x}'], []])
  expect(callOf([take({}, { terms: other })])!.script).toBe(script)
  expect(callOf([take({ subject: 'y' }, { terms: other, subject: 'y' })], 7, 'shop')).toMatchObject(
    {
      keys: ['sluice:1:shop:{y}'],
      args: ['7'],
      script,
    },
  )
})

test('A limit of its own for each client has no compiled script, because there may be any number.', () => {
  const callOf = compiledCalls()
  expect(callOf([take({ terms: { ...policy, isOwn: true } })])).toBeUndefined()
  expect(callOf([take({}, { terms: { ...other, isOwn: true } })])).toBeUndefined()
})

test('Costs and calendar periods are arguments, in the order of the limits, behind the time.', () => {
  const callOf = compiledCalls()
  const argsOf = (requests: StoreRequest[], now?: number) => callOf(requests, now)!.args
  expect(argsOf([take({ period }, { terms: other, period })])).toEqual(['', '1/2/4'])
  expect(argsOf([take({ period, cost: 3 }, { terms: other })], 7)).toEqual(['7', '3', '1/2/4', '1'])
  const two = [take({ period, cost: 3 }), take({ period: [2, 4, 5], subject: 'y' })]
  expect(argsOf(two)).toEqual(['', '3', '1/2/4', '1', '2/4/5'])
})

test('Requests with the same limits share a call for many keys.', () => {
  const callOf = compiledCalls()
  const { keys, args, script } = callOf([take({ subject: 'y' }), take({})])!
  expect([keys, args]).toEqual([['sluice:1:{y}', 'sluice:1:{x}'], []])
  expect(script.text).toContain("'MGET'")
  expect(callOf([take({})])!.script.text).not.toContain("'MGET'")
})

const penalty = { tag: 'p', after: 3, withinMs: 1000, banMs: 60_000, maxMs: 600_000 }
test.each<[what: string, requests: StoreRequest[]]>([
  ['another mode', [{ mode: 'peek', limits: [limit()] }]],
  ['a follow behind a take', [take({}), { mode: 'follow', limits: [limit({ subject: 'y' })] }]],
  ['a penalty', [take({ penalty })]],
  ['a floor', [take({ floor: 1 })]],
  ['an override', [take({ override: { share: 0, scalesBurst: true } })]],
  ['a sliding log', [take({}, { terms: { ...policy, algorithm: 'sliding-log' } })]],
  ['slots', [take({ terms: { ...policy, algorithm: 'concurrency' }, slot: 'a' })]],
  ['two keys for one request', [take({}, { terms: other, subject: 'y' })]],
  ['a cost of 0', [take({ cost: 0 })]],
  ['one key for two requests', [take({}), take({})]],
  ['different limits', [take({}), take({ terms: other, subject: 'y' })]],
  [
    'more limits in a later request',
    [take({}), take({ subject: 'y' }, { terms: other, subject: 'y' })],
  ],
  ['fewer limits in a later request', [take({}, { terms: other }), take({ subject: 'y' })]],
  ['a period in one of two requests', [take({}), take({ period, subject: 'y' })]],
  [
    'eight limits',
    [take(...Array.from({ length: 8 }, (_, n) => ({ terms: { ...policy, tag: `${n}` } })))],
  ],
  ['no limits', [take()]],
  ['no requests', []],
])('The general script decides a call with %s.', (_, requests) => {
  expect(compiledCalls()(requests)).toBeUndefined()
})

test('The general script decides a call if the period of a set appears or disappears.', () => {
  const callOf = compiledCalls()
  expect(callOf([take({ period })])).toBeDefined()
  expect(callOf([take({})])).toBeUndefined()
  expect(callOf([take({ period: [4, 5, 6] })])).toBeDefined()
})

test('New terms with the same content use the same script, and other terms another one.', () => {
  const callOf = compiledCalls()
  const { script } = callOf([take({})])!
  expect(callOf([take({ terms: { ...policy } })])!.script).toBe(script)
  for (const change of [{ limit: 7 }, { align: 'clock' as const }, { windowMs: 7 }, { tag: 'v' }]) {
    expect(callOf([take({ terms: { ...policy, ...change } })])!.script).not.toBe(script)
  }
  const bursts = [8, 9].map((burst) => callOf([take({ terms: { ...other, burst } })])!.script)
  expect(bursts[0]).not.toBe(bursts[1])
})

test('A set with one tag twice is an error, since each limit would be charged without the other.', () => {
  const repeated = [take({}, { terms: { ...other, tag: policy.tag } })]
  expect(() => compiledCalls()(repeated)).toThrow('unexpected tag (repeated)')
})

test('An isolate compiles 64 sets, and keeps them.', () => {
  const callOf = compiledCalls()
  const limits = Array.from({ length: 65 }, (_, n) => ({ terms: { ...policy, tag: `t${n}` } }))
  // The first set has two limits.
  const sets = limits.map((one, index) => [index === 0 ? take(one, { terms: other }) : take(one)])
  const texts = sets.map((requests) => callOf(requests)?.script.text)
  expect(texts.indexOf(undefined)).toBe(64)
  expect(new Set(texts).size).toBe(65)
  expect(callOf([take(limits[1]!, { terms: other })])).toBeUndefined()
  expect(callOf([take(limits[0]!)])).toBeUndefined()
  expect(sets.map((requests) => callOf(requests)?.script.text)).toEqual(texts)
})

test('After three declined calls the general script decides the calls of a set, and only of this one.', () => {
  const callOf = compiledCalls()
  for (let declined = 0; declined < 3; declined++) {
    const call = callOf([take({})])
    expect(call).toBeDefined()
    call!.set.declines += 1
  }
  expect(callOf([take({})])).toBeUndefined()
  expect(callOf([take({ subject: 'y' }), take({})])).toBeUndefined()
  expect(callOf([take({ terms: other })])).toBeDefined()
})

test('No tag and no number can become code: the call of an invalid value fails, and no script has it.', () => {
  const hostile = fc.oneof(
    anyText,
    fc.constantFrom(
      "'",
      '"',
      '%',
      '$n',
      '$tag',
      "a') redis.call('FLUSHALL') --",
      'a\n',
      ']]',
      '\\',
    ),
  )
  const numbers = fc.oneof(hostile, fc.constantFrom(Number.NaN, Infinity, 1e21, -1, 0.5, '1', null))
  const field = fc.oneof(
    fc.tuple(fc.constantFrom('tag', 'algorithm', 'align'), hostile),
    fc.tuple(fc.constantFrom('limit', 'windowMs', 'burst'), numbers),
  )
  const isSound = (name: string, value: unknown) => name === 'tag' && /^[\w-]+$/.test(`${value}`)
  fc.assert(
    fc.property(field, ([name, value]) => {
      fc.pre(!isSound(name, value))
      const terms = { ...other, [name]: value } as Terms
      expect(() => compiledCalls()([take({ terms })]), `${name} ${value}`).toThrow(/internal/)
    }),
  )
  const bad = [take({ period: ["1/2/3') --", 2, 4] as never })]
  expect(() => compiledCalls()(bad)).toThrow(/internal/)
})

test('The tag of a policy with any name that the configuration accepts is a word.', () => {
  fc.assert(
    fc.property(anyText, (name) => {
      try {
        for (const { tag } of parseConfig({ policies: [{ name, limit: 1, window: '1s' }] })
          .policies)
          expect(tag).toMatch(/^[a-z\d]+$/)
      } catch (error) {
        expect(String(error)).toMatch(/name/)
      }
    }),
  )
})

test('A compiled script is at most a quarter of the general script for one limit, and shorter than it for seven.', () => {
  const textOf = (count: number) => {
    const limits = Array.from({ length: count }, (_, n) => ({
      terms: { ...policy, tag: `tag000${n}`, algorithm: 'sliding-window' as const },
    }))
    return compiledCalls()([take(...limits)])!.script.text
  }
  expect(textOf(1).length).toBeLessThan(script.length / 4)
  expect(textOf(7).length).toBeLessThan(script.length)
})
