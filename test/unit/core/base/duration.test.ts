import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseDuration, waitText } from '../../../../src/core/base/duration.ts'

test.each([
  ['1ms', 1],
  ['500ms', 500],
  ['10s', 10_000],
  ['10 s', 10_000],
  ['1.5s', 1500],
  ['1.1h', 3_960_000],
  ['2.01s', 2010],
  ['1m', 60_000],
  ['1h', 3_600_000],
  ['1d', 86_400_000],
  ['2w', 1_209_600_000],
  [250, 250],
])('The duration %j is %d ms.', (input, milliseconds) => {
  expect(parseDuration(input)).toBe(milliseconds)
})

test.each([
  '',
  '10',
  's',
  '10 minuts',
  '-1s',
  '0s',
  '0.5ms',
  '1e3s',
  '10S',
  ' 10s',
  '10s ',
  '1m30s',
  `${'9'.repeat(30)}d`,
  0,
  -1,
  1.5,
  NaN,
  Infinity,
  2 ** 51 + 1,
  2 ** 53,
  null,
  undefined,
  true,
  {},
  [],
  ['10s'],
])('The value %j is not a duration.', (input) => {
  expect(parseDuration(input)).toBeUndefined()
})

test('A wait in words is never shorter than the wait, and longer by less than one of its unit.', () => {
  const sizes = { second: 1_000, minute: 60_000, hour: 3_600_000, day: 86_400_000 }
  fc.assert(
    fc.property(fc.oneof(fc.nat(400_000_000), fc.maxSafeNat()), (ms) => {
      const [, count, unit, plural] = /^(\d+) (second|minute|hour|day)(s?)$/.exec(waitText(ms))!
      const size = sizes[unit as keyof typeof sizes]
      const told = Number(count) * size
      expect([told >= ms, told - ms <= size, plural === 's']).toEqual([true, true, count !== '1'])
      // A person counts no 121 seconds, 121 minutes or 49 hours.
      const most = { second: 120, minute: 120, hour: 48, day: Infinity }
      expect(Number(count)).toBeLessThanOrEqual(most[unit as keyof typeof most])
    }),
  )
})
