/** The checks of a call, which are made before it is sent. The script relies on them. */
import { expect, test } from 'vitest'
import type {
  Idempotency,
  Limit,
  StoreRequest,
  Terms,
} from '../../../../src/core/connection/store.ts'
import { encode } from '../../../support/coding.ts'

const usual: Terms = {
  tag: 't',
  algorithm: 'fixed-window',
  limit: 10,
  windowMs: 1000,
  burst: 10,
  align: 'clock',
  localShare: 1,
}
const row = (terms: Partial<Terms> = {}, changed: Partial<Limit> = {}): Limit => ({
  subject: 'x',
  terms: { ...usual, ...terms },
  cost: 1,
  ...changed,
})
const of = (limits: Limit[], mode: string = 'take', others: object = {}) =>
  ({ mode, limits, ...others }) as StoreRequest

/** The message of the error of a call, or '' if it is valid. */
function refusal(requests: StoreRequest[], now?: number, idempotency?: Idempotency): string {
  try {
    encode(requests, now, idempotency)
    return ''
  } catch (error) {
    expect(error).toMatchObject({ name: 'StoreError', code: 'internal' })
    return String((error as Error).cause)
  }
}
const second = (request: StoreRequest) => refusal([of([row()]), request])

const most = 2 ** 51
const noUnits = [
  Number.NaN,
  Infinity,
  -Infinity,
  1.5,
  -1,
  -0.5,
  2 ** 53,
  '1',
  ' ',
  null,
] as number[]
const numbers = [...noUnits, most + 1]

test.each<[keyof Terms, unknown[]]>([
  ['tag', ['', 'a:b', 'a;b', 'a b', 'a,b', 'ä', 'a\n', '%w', 'a\0b']],
  ['algorithm', ['', 'idempotency', 'fixed_window', 'gcra', 'penalty', 'toString', '__proto__']],
  ['limit', [...noUnits, 0]],
  ['windowMs', [...numbers, 0]],
  ['burst', [...noUnits, 0]],
  ['align', ['', 'Clock', 'none']],
])(
  'A limit with an invalid %s is refused with an error that names the request and the value.',
  (field, values) => {
    for (const value of values) {
      const message = second(of([row({ [field]: value })]))
      const name = field === 'windowMs' ? 'window' : field
      expect(message, String(value)).toBe(`ERR sluice: request 2: unexpected ${name}`)
    }
  },
)

test('An invalid mode, an invalid cost, an invalid time and a request without limits are refused.', () => {
  for (const mode of ['', 'TAKE', 'give-back', 'shadow', 'idempotency', 'un-ban', 'toString']) {
    expect(second(of([row()], mode)), mode).toBe('ERR sluice: request 2: unexpected mode')
  }
  for (const cost of [...noUnits, undefined as never]) {
    expect(second(of([row({}, { cost })]))).toBe('ERR sluice: request 2: unexpected cost')
  }
  for (const now of numbers) {
    expect(refusal([of([row()])], now)).toBe('ERR sluice: call: unexpected now')
  }
  for (const decidedAt of numbers) {
    const message = second(of([row()], 'refund', { decidedAt }))
    expect(message).toBe('ERR sluice: request 2: unexpected decidedAt')
  }
  expect(second(of([]))).toBe('ERR sluice: request 2: unexpected number of limits')
})

test.each<Partial<Terms>>([
  { limit: most, windowMs: 2 },
  { limit: 2, windowMs: most },
  { limit: 3002399751580331, windowMs: 1 },
  { limit: 1000799917193444, windowMs: 3 },
  { burst: 1000799917193444, windowMs: 3 },
])(
  'A product of limit or burst and window above 2^53 / 3 is refused, except for a fixed window: %j.',
  (terms) => {
    for (const algorithm of ['sliding-window', 'token-bucket'] as const) {
      expect(refusal([of([row({ ...terms, algorithm })])])).toMatch(
        /^ERR sluice: request 1: unexpected (limit|burst)$/,
      )
    }
    expect(refusal([of([row(terms)])])).toBe('')
  },
)

test('A fixed window of any length has any limit and cost up to 2^53 - 1, also of an operator.', () => {
  const units = 2 ** 53 - 1
  const budget = { limit: units, burst: units, windowMs: most }
  expect(refusal([of([row(budget, { cost: units, floor: units })])])).toBe('')
  expect(refusal([of([row(budget, { period: [0, most - 1, most] })])])).toBe('')
  const override = { share: 1, scalesBurst: true }
  const resize = of([row({}, { override })], 'override', { units, forMs: 1 })
  expect(refusal([resize])).toBe('')
})

test('Products of limit or burst and window up to 2^53 / 3 are accepted.', () => {
  const large = { limit: most, burst: most, windowMs: 1 }
  const thirds = { limit: 1000799917193443, burst: 1000799917193443, windowMs: 3 }
  for (const terms of [{ limit: 2 ** 26, burst: 2 ** 25, windowMs: 2 ** 25 }, large, thirds]) {
    expect(refusal([of([row({ ...terms, algorithm: 'sliding-window' }, { cost: most })])])).toBe('')
  }
})

const period = (times: number[], terms: Partial<Terms> = {}) =>
  refusal([of([row(terms, { period: times as never })])])

test.each([
  ['two times', [1, 2]],
  ['four times', [1, 2, 3, 4]],
  ['no times', []],
  ['a fraction', [1, 2, 3.5]],
  ['a time below 0', [-1, 2, 3]],
  ['an empty period', [1, 1, 3]],
  ['periods out of order', [1, 3, 2]],
  ['a time beyond 2^51', [1, 2, most + 1]],
])('A calendar period with %s is refused.', (_, times) => {
  expect(period(times)).toBe('ERR sluice: request 1: unexpected period')
})

const slots = (slot: string | undefined, mode = 'take', terms: Partial<Terms> = {}) =>
  refusal([
    of([row({ algorithm: 'concurrency', ...terms }, slot === undefined ? {} : { slot })], mode),
  ])

test('A malformed or missing slot id, more than 10,000 slots and a log of more than 10,000 units are refused.', () => {
  for (const slot of [undefined, '', 'a:1', 'a b', 'x'.repeat(65), '1,2,3', '1/2/3']) {
    for (const mode of ['take', 'follow', 'refund']) {
      expect(slots(slot, mode), slot).toBe('ERR sluice: request 1: unexpected slot')
    }
  }
  expect(slots('id', 'take', { limit: 10_001 })).toMatch(/unexpected limit/)
  expect(refusal([of([row({ algorithm: 'sliding-log', limit: 10_001 })])])).toMatch(
    /unexpected limit/,
  )
  expect(refusal([of([row({ algorithm: 'sliding-log', limit: 10_000 })])])).toBe('')
})

test('Slot ids of 64 characters, slot ids that look like alignments, and a peek without a slot id are accepted.', () => {
  for (const slot of ['x'.repeat(64), 'clock', '-', '_9']) expect(slots(slot)).toBe('')
  for (const mode of ['peek', 'reset', 'unban']) {
    for (const slot of ['', undefined]) expect(slots(slot, mode)).toBe('')
  }
})

test('A floor above the quota, a debt of slots, and an invalid limit of an operator are refused.', () => {
  const floored = (floor: number, terms: Partial<Terms> = {}) =>
    refusal([of([row(terms, { floor })])])
  for (const floor of [...noUnits, 11]) expect(floored(floor)).toMatch(/unexpected floor$/)
  expect(floored(4, { algorithm: 'token-bucket', burst: 3 })).toMatch(/unexpected floor$/)
  expect(floored(10)).toBe('')
  const slot = row({ algorithm: 'concurrency' }, { slot: 'id' })
  expect(refusal([of([slot], 'debt')])).toMatch(/unexpected algorithm of a debt$/)

  const resize = (units: number, forMs = 1, share = 0.5) =>
    refusal([
      of(
        [row({ algorithm: 'sliding-window' }, { override: { share, scalesBurst: true } })],
        'override',
        { units, forMs },
      ),
    ])
  for (const share of [0, 1]) expect(resize(7, 1, share)).toBe('')
  for (const share of [-0.1, 1.1, Number.NaN]) expect(resize(7, 1, share)).toMatch(/share$/)
  for (const forMs of [...numbers, 0]) expect(resize(7, forMs)).toMatch(/unexpected forMs$/)
  for (const units of [1.5, -1, most, 0, Number.NaN, null, undefined] as number[]) {
    expect(resize(units)).toMatch(/unexpected limit$/)
  }
  expect(refusal([of([row()], 'override', { units: 7, forMs: 1 })])).toMatch(/unexpected mode$/)
})

const penal = { tag: 'p', after: 3, withinMs: 1000, banMs: 60_000, maxMs: 600_000 }
const withPenalty = (changed: Partial<typeof penal> = {}, subject = 'x') =>
  row({}, { subject, penalty: { ...penal, ...changed } })

test('A penalty with an invalid tag or an invalid number is refused.', () => {
  expect(refusal([of([withPenalty({ tag: 'a:b' })])])).toMatch(/unexpected tag of a penalty$/)
  for (const field of ['after', 'withinMs', 'banMs', 'maxMs'] as const) {
    for (const value of [...numbers, 0]) {
      const message = refusal([of([withPenalty({ [field]: value })])])
      expect(message, `${field} ${value}`).toBe(`ERR sluice: request 1: unexpected ${field}`)
    }
  }
  const large = { after: most, withinMs: most, banMs: most, maxMs: most }
  expect(refusal([of([withPenalty(large)])])).toBe('')
})

test('A ban needs a penalty, and its length is at most the maximum.', () => {
  const ban = (limits: Limit[], banMs?: number) => refusal([of(limits, 'ban', { banMs })])
  expect(ban([row()])).toBe('ERR sluice: request 1: unexpected mode (a ban needs a penalty)')
  expect(ban([row(), withPenalty({}, 'y')])).toBe('')
  for (const banMs of [0, 1.5, 600_001]) expect(ban([withPenalty()], banMs)).toMatch(/banMs$/)
  expect(ban([withPenalty()], 600_000)).toBe('')
  expect(ban([withPenalty({ banMs: 600_001 })])).toMatch(/banMs$/)
  expect(refusal([of([withPenalty({ banMs: 600_001 })])])).toBe('')
})

test('A request that names one state twice is refused, and several requests may name it.', () => {
  const repeated = 'ERR sluice: request 1: unexpected tag (repeated)'
  expect(refusal([of([row(), row()])])).toBe(repeated)
  expect(refusal([of([row(), row({ tag: 'u' }), row()])])).toBe(repeated)
  expect(refusal([of([withPenalty({ tag: 't' })])])).toBe(repeated)
  expect(refusal([of([withPenalty(), row({ tag: 'u' }, { penalty: penal })])])).toBe(repeated)
  expect(refusal([of([row(), row({}, { subject: 'y' })]), of([row()])])).toBe('')
})

const many = (count: number) =>
  Array.from({ length: count }, (_, index) => of([row({}, { subject: `${index}` })]))

test('A call has 1 to 128 requests and at most 128 keys besides its idempotency key.', () => {
  const idempotency = { key: 'k', fingerprint: 'f', forMs: 1 }
  expect(refusal([])).toBe('ERR sluice: call: unexpected number of requests')
  expect(refusal(many(128))).toBe('')
  expect(refusal(many(128), undefined, idempotency)).toBe('')
  const one = many(129).map(() => of([row()]))
  expect(refusal(one)).toBe('ERR sluice: call: unexpected number of requests')
  const wide = of(many(129).flatMap(({ limits }) => limits))
  expect(refusal([wide])).toBe('ERR sluice: call: unexpected number of keys')
})

test('A fingerprint is an id, the reply is stored for at least 1 ms, and no limit has the name of the key.', () => {
  const once = (changed: Partial<Idempotency>) =>
    refusal([of([row()])], 7, { key: 'k', fingerprint: 'f', forMs: 1, ...changed })
  expect(once({ fingerprint: 'x'.repeat(64), forMs: most })).toBe('')
  for (const fingerprint of ['', 'a:b', 'x'.repeat(65)]) {
    expect(once({ fingerprint })).toBe('ERR sluice: idempotency: unexpected fingerprint')
  }
  for (const forMs of [...numbers, 0]) {
    expect(once({ forMs })).toBe('ERR sluice: idempotency: unexpected forMs')
  }
  expect(once({ key: 'x' })).toBe('ERR sluice: idempotency: unexpected key (used by a limit)')
})
