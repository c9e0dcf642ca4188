import { expect, test } from 'vitest'
import { createDemand } from '../../../../src/store/leases/demand.ts'

test('units count in full within their span, and fade out over the next one', () => {
  const demand = createDemand(1000)
  demand.add(6, 5000)
  demand.add(4, 5999)
  const at = [5999, 6000, 6500, 6999, 7000].map((now) => demand.recent(now))
  expect(at).toEqual([10, 10, 5, expect.closeTo(0.01), 0])
})

test('after a span without demand nothing is left of it', () => {
  const demand = createDemand(1000)
  demand.add(6, 5000)
  expect(demand.recent(7000)).toBe(0)
})

test('a clock that was set back starts the count anew', () => {
  const demand = createDemand(1000)
  demand.add(6, 5000)
  expect(demand.recent(4999)).toBe(0)
  demand.add(2, 4999)
  expect(demand.recent(5500)).toBe(2)
})
