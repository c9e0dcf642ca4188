import { expect, test } from 'vitest'
import { isLate, isWithin } from '../../../src/base/clock.ts'

test('A span includes its start and excludes its end.', () => {
  expect([99, 100, 199, 200].map((now) => isWithin(now, 100, 200))).toEqual([
    false,
    true,
    true,
    false,
  ])
})

test('A span ends if the clock is set back to before its start.', () => {
  expect(isWithin(100 - 86_400_000, 100, 200)).toBe(false)
})

test('A span that starts at minus infinity includes no time.', () => {
  const never = Number.NEGATIVE_INFINITY
  expect(isWithin(0, never, never + 1000)).toBe(false)
})

test('A timer is late if it fires more than 50 ms after its due time.', () => {
  expect([-5, 50, 51].map(isLate)).toEqual([false, false, true])
})
