import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createLog } from '../../../src/base/log.ts'

const NOW = 1_789_000_000_000

beforeEach(() => vi.useFakeTimers({ now: NOW }))
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

test('A clock that is set back does not silence the log until it catches up.', () => {
  const written = vi.spyOn(console, 'error').mockReturnValue()
  const log = createLog()
  log('report-lost', 'timeout', 'a report was lost')
  vi.setSystemTime(NOW - 3_600_000)
  log('report-lost', 'timeout', 'a report was lost')
  expect(written).toHaveBeenCalledTimes(2)
})
