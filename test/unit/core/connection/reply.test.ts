import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Limit, StoreRequest } from '../../../../src/core/connection/store.ts'
import { decode } from '../../../support/coding.ts'

const terms: Limit['terms'] = {
  tag: 't',
  algorithm: 'fixed-window',
  limit: 5,
  windowMs: 10,
  burst: 5,
  align: 'first-request',
  localShare: 1,
}
const penalty = { tag: 'p', after: 3, withinMs: 1000, banMs: 60_000, maxMs: 600_000 }
const rowOf = (changed: Partial<Limit> = {}): Limit => ({
  subject: 'x',
  terms,
  cost: 1,
  ...changed,
})
const take = (...limits: Limit[]): StoreRequest => ({ mode: 'take', limits })
const of = (algorithm: Limit['terms']['algorithm']) => rowOf({ terms: { ...terms, algorithm } })

test.each([
  ['null', null],
  ['a list', ['99 +;']],
  ['a number', 99],
  ['another text', 'OK'],
  ['too short', '99'],
  ['too long', '99 +; +;'],
  ['without a time', '+;'],
  ['an empty time', ' +;'],
  ['a time with a fraction', '99.5 +;'],
  ['a time with an exponent', '1e3 +;'],
  ['a negative time', '-99 +;'],
  ['a time above 2^53', '9999999999999999 +;'],
  ['a number instead of states', '99 1'],
  ['without a mark', '99 90:10:1;'],
  ['a state with too few numbers', '99 +90:10;'],
  ['a state with too many numbers', '99 +90:10:1:2:3;'],
  ['a state with a negative number', '99 +90:10:-1;'],
  ['a state with a fraction', '99 +90:10:1.5;'],
  ['a state with the numbers of another algorithm', '99 +90:10:1:2;'],
  ['a state that has run out', '99 +89:10:1;'],
  ['a state with a time above 2^53', '99 +9999999999999999:10:1;'],
  ['a state that runs out after 2^53', '99 -9007199254740990:10:5;'],
  ['too few states', '99 '],
  ['too many states', '99 +;+;'],
  ['a state without an end', '99 +'],
  ['an empty part', '99 +;;'],
  ['a ban without a penalty', '99 +;!0;'],
  ['the numbers of a log', '99 +1,2,3,4;'],
])('A reply that is %s, or has it, is not accepted.', (_, reply) => {
  expect(decode(reply, [take(rowOf())])).toBeUndefined()
})

test('A reply of arbitrary text is not accepted, or has whole numbers that are not negative.', () => {
  const number = fc.oneof(fc.nat(200), fc.maxSafeInteger(), fc.constantFrom('', '1e9', '0x1', 1e16))
  const part = fc
    .tuple(fc.constantFrom('+', '-', '!', ''), fc.array(number, { maxLength: 5 }))
    .chain(([mark, numbers]) =>
      fc.constantFrom(':', ',').map((separator) => `${mark}${numbers.join(separator)}`),
    )
  const text = fc
    .array(part, { maxLength: 5 })
    .map((parts) => parts.map((one) => `${one};`).join(''))
  const names = ['fixed-window', 'sliding-window', 'token-bucket', 'sliding-log'] as const
  const limits = fc.array(
    fc.record({ name: fc.constantFrom(...names), isPenal: fc.boolean(), cost: fc.nat(9) }),
    { minLength: 1, maxLength: 3 },
  )
  const time = fc.oneof(fc.nat(200), fc.maxSafeInteger())
  fc.assert(
    fc.property(time, text, limits, (time, text, limits) => {
      const rows = limits.map(({ name, isPenal, cost }) => ({
        ...of(name),
        cost,
        ...(isPenal && { penalty }),
      }))
      for (const state of decode(`${time} ${text}`, [take(...rows)])?.states[0] ?? []) {
        for (const value of Object.values(state)) {
          if (typeof value !== 'number') continue
          expect(Number.isSafeInteger(value) && value >= 0, text).toBe(true)
        }
      }
    }),
    { numRuns: 1000 },
  )
})

test.each([
  ['without a state', '99 -;', 'fixed-window'],
  ['of a record without a wait', '99 -3,0,0,0;', 'sliding-log'],
  ['of a record that admits with a wait', '99 +3,5,0,0;', 'sliding-log'],
] as const)(
  'The mark of a limit %s contradicts its wait, so the reply is malformed.',
  (_, text, name) => {
    expect(decode(text, [take(of(name))])).toBeUndefined()
  },
)

test('The numbers of a limit follow from its stored state.', () => {
  const read = (part: string, limit = rowOf()) =>
    decode(`99 ${part};`, [take(limit)])!.states[0]![0]
  const numbers = (remaining: number, resetAfterMs: number, nextAfterMs: number) => ({
    remaining,
    resetAfterMs,
    nextAfterMs,
  })
  const admitted = { allowed: true, retryAfterMs: 0 }
  expect(read('+')).toEqual({ ...admitted, ...numbers(5, 0, 0) })
  expect(read('+95:10:2')).toEqual({ ...admitted, ...numbers(3, 6, 6) })
  // The last unit is this request's: it need not wait for another one.
  expect(read('+95:10:5')).toEqual({ ...admitted, ...numbers(0, 6, 6) })
  expect(read('-95:10:5')).toEqual({ allowed: false, retryAfterMs: 6, ...numbers(0, 6, 6) })
  const never = { allowed: false, retryAfterMs: null }
  expect(read('-', rowOf({ cost: 6 }))).toEqual({ ...never, ...numbers(5, 0, 0) })
  expect(read('+90:20:2:1', of('sliding-window'))).toEqual({ ...admitted, ...numbers(2, 11, 1) })
  expect(read('+99:4:20', of('token-bucket'))).toEqual({ ...admitted, ...numbers(3, 4, 2) })
})

test('A wait is not longer than the rest of the life of the state, which may have changed its terms.', () => {
  const read = (cost: number) =>
    decode('99 -99:3:50;', [take({ ...of('token-bucket'), cost })])!.states[0]![0]
  expect(read(5)).toEqual({
    allowed: false,
    remaining: 0,
    retryAfterMs: 3,
    resetAfterMs: 3,
    nextAfterMs: 2,
  })
})

test('The script decides: a limit that it has refused is refused, whatever its state is.', () => {
  // A reply that is replayed after the terms have changed.
  const [[state]] = decode('99 -95:10:2;', [take(rowOf())])!.states as [[unknown]]
  expect(state).toMatchObject({ allowed: false, remaining: 3, retryAfterMs: 0 })
})

test('A sliding window has two numbers, and the other algorithms have one.', () => {
  for (const algorithm of ['fixed-window', 'sliding-window', 'token-bucket'] as const) {
    const accepted = ['+90:20:1;', '+90:20:1:1;'].map((text) =>
      Boolean(decode(`99 ${text}`, [take(of(algorithm))])),
    )
    expect(accepted).toEqual(algorithm === 'sliding-window' ? [false, true] : [true, false])
  }
})

test('A log and slots reply with their numbers.', () => {
  const read = (part: string) => decode(`99 ${part}`, [take(of('sliding-log'))])?.states[0]?.[0]
  const rest = { remaining: 4, resetAfterMs: 10, nextAfterMs: 5 }
  expect(read('+4,0,10,5;')).toEqual({ ...rest, allowed: true, retryAfterMs: 0 })
  expect(read('-4,9,10,5;')).toEqual({ ...rest, allowed: false, retryAfterMs: 9 })
  expect(read('-4,-1,10,5;')).toEqual({ ...rest, allowed: false, retryAfterMs: null })
  const wrong = ['+4,0,10;', '+4,0,10,5,5;', '+4,0,10,-5;', '4,0,10,5;', '+90:10:1;', '-4,-9,10,5;']
  for (const part of [...wrong, '-4,9999999999999999,10,5;', '+9999999999999999,0,10,5;']) {
    expect(read(part), part).toBeUndefined()
  }
})

test('The reserved units are the units of the floor that are left.', () => {
  const read = (part: string, algorithm: Limit['terms']['algorithm']) =>
    decode(`99 ${part};`, [take({ ...of(algorithm), floor: 2 })])!.states[0]![0]
  expect(read('+95:10:1', 'fixed-window')).toMatchObject({ remaining: 2, reserved: 2 })
  expect(read('-95:10:4', 'fixed-window')).toMatchObject({ remaining: 0, reserved: 1 })
  expect(read('+1,0,10,5', 'sliding-log')).toMatchObject({ remaining: 1, reserved: 2 })
  expect(read('--1,9,10,5', 'sliding-log')).toMatchObject({ remaining: 0, reserved: 1 })
})

test('A ban refuses its limit, and the longer wait applies. The wait stays null if the cost can never fit.', () => {
  const read = (text: string, cost = 1) =>
    decode(`99 ${text}`, [take(rowOf({ penalty, cost }))])!.states[0]![0]
  const free = read('+95:10:1;!0;')
  expect(free).toEqual({
    allowed: true,
    remaining: 4,
    retryAfterMs: 0,
    resetAfterMs: 6,
    nextAfterMs: 6,
  })
  const banned = { ...free, allowed: false, bannedForMs: 5 }
  expect(read('+95:10:1;!5;')).toEqual({ ...banned, retryAfterMs: 5 })
  expect(read('-95:10:1;!5;', 5)).toEqual({ ...banned, retryAfterMs: 6 })
  expect(read('-95:10:1;!5;', 6)).toEqual({ ...banned, retryAfterMs: null })
  for (const text of ['+;', '+;!;', '+;!-5;', '+;!5', '+;!9999999999999999;', '+;!0;!0;']) {
    expect(decode(`99 ${text}`, [take(rowOf({ penalty }))]), text).toBeUndefined()
  }
})

test('The bans of a request follow all of its limits, and a refund has none.', () => {
  const limits = [rowOf({ penalty }), rowOf(), rowOf({ penalty })]
  const { states } = decode('99 +;+;+;!3;!0;', [take(...limits)])!
  expect(states[0]!.map(({ bannedForMs }) => bannedForMs)).toEqual([3, undefined, undefined])
  expect(decode('99 +;+;+;', [{ mode: 'refund', limits }])?.states[0]).toHaveLength(3)
})

test('A reply is decoded request by request.', () => {
  const requests = [take(rowOf()), take(rowOf(), rowOf({ subject: 'y' }))]
  const { decidedAt, states } = decode('99 +95:10:1; +95:10:2;-95:10:5;', requests)!
  expect(decidedAt).toBe(99)
  expect(states.map((some) => some.map(({ remaining }) => remaining))).toEqual([[4], [3, 0]])
})

test('With an idempotency key the second part marks a replay.', () => {
  const idempotency = { key: 'k', fingerprint: 'f', forMs: 9 }
  const read = (mark: string) => decode(`99 ${mark}+;`, [take(rowOf())], idempotency)
  const first = read('0 ')!
  expect(first.states[0]![0]).toMatchObject({ allowed: true, remaining: 5 })
  expect(first).not.toHaveProperty('replayed')
  expect(read('1 ')).toEqual({ ...first, replayed: true })
  for (const wrong of ['', '2 ', ' ', '01 ']) expect(read(wrong)).toBeUndefined()
})

test('A limit of an operator above 2^53 is no reply.', () => {
  const override = { share: 0, scalesBurst: true }
  const log = rowOf({ terms: { ...terms, algorithm: 'sliding-log' }, override })
  expect(decode('99 =7:1000;+5,0,0,0;', [take(log)])?.states[0]).toMatchObject([{ limit: 7 }])
  for (const operator of ['9999999999999999:1000', '7:9999999999999999']) {
    expect(decode(`99 =${operator};+5,0,0,0;`, [take(log)]), operator).toBeUndefined()
  }
})
