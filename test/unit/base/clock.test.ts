import { expect, test } from 'vitest'
import { isLate, isWithin } from '../../../src/base/clock.ts'

test('a span includes its start and excludes its end', () => {
  expect([99, 100, 199, 200].map((now) => isWithin(now, 100, 200))).toEqual([
    false,
    true,
    true,
    false,
  ])
})

test('a span ends when the clock is set back to before its start', () => {
  expect(isWithin(100 - 86_400_000, 100, 200)).toBe(false)
})

test('a span that has not begun does not include any time', () => {
  const never = Number.NEGATIVE_INFINITY
  expect(isWithin(0, never, never + 1000)).toBe(false)
})

test('a timer that is up to 50 ms late does not show that the isolate is behind', () => {
  expect([-5, 50, 51].map(isLate)).toEqual([false, false, true])
})
