import { expect, test } from 'vitest'
import { createDemand } from '../../../../src/features/leases/lease.ts'

test('Units count in full within their span, and fade out during the next one.', () => {
  const demand = createDemand(1000)
  demand.add(6, 5000)
  demand.add(4, 5999)
  const at = [5999, 6000, 6500, 6999, 7000].map((now) => demand.recent(now))
  expect(at).toEqual([10, 10, 5, expect.closeTo(0.01), 0])
})

test('After a whole span without demand the count is 0.', () => {
  const demand = createDemand(1000)
  demand.add(6, 5000)
  expect(demand.recent(7000)).toBe(0)
})

test('A clock that is set back resets the count.', () => {
  const demand = createDemand(1000)
  demand.add(6, 5000)
  expect(demand.recent(4999)).toBe(0)
  demand.add(2, 4999)
  expect(demand.recent(5500)).toBe(2)
})
