import { afterEach, expect, test, vi } from 'vitest'
import { isLate, isWithin } from '../../../../src/core/base/clock.ts'
import { createLog } from '../../../../src/core/base/log.ts'

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

test('A span includes its start and excludes its end.', () => {
  const included = [99, 100, 199, 200].map((now) => isWithin(now, 100, 200))
  expect(included).toEqual([false, true, true, false])
})

test('A span ends if the clock is set back to before its start, and one from minus infinity includes no time.', () => {
  expect(isWithin(100 - 86_400_000, 100, 200)).toBe(false)
  const never = Number.NEGATIVE_INFINITY
  expect(isWithin(0, never, never + 1000)).toBe(false)
})

test('A clock that is set back does not silence the log until it catches up.', () => {
  const now = 1_789_000_000_000
  vi.useFakeTimers({ now })
  const written = vi.spyOn(console, 'error').mockReturnValue()
  const log = createLog()
  log('report-lost', 'timeout', 'a report was lost')
  vi.setSystemTime(now - 3_600_000)
  log('report-lost', 'timeout', 'a report was lost')
  expect(written).toHaveBeenCalledTimes(2)
})

test('A timer is late if it fires more than 50 ms after its due time.', () => {
  expect([-5, 50, 51].map(isLate)).toEqual([false, false, true])
})
