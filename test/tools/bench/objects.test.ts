import { expect, test } from 'vitest'
import { billOf, priceOf } from '../../../tools/bench/objects.ts'

test('A busy client writes a row for ten decisions, and a sparse one a row for each.', async () => {
  const busy = await billOf(100, 1000)
  expect(busy.requests).toBe(1001) // and the alarm
  expect(busy.rowsWritten / 1000).toBeCloseTo(0.1, 1)
  const sparse = await billOf(1 / 10, 200)
  expect(sparse.rowsWritten).toBeGreaterThanOrEqual(200)
  expect(sparse.rowsWritten).toBeLessThan(220)
})

test('A client that comes once costs a call, an alarm, and the write and the deletion of its row.', async () => {
  expect(await billOf(1, 1)).toEqual({
    requests: 2,
    rowsWritten: 3, // the record, the alarm, the deletion
    rowsRead: 2,
    activeMs: 10,
  })
})

test('The price adds requests, rows and time.', () => {
  const bill = { requests: 2e6, rowsWritten: 3e6, rowsRead: 1e6, activeMs: 1e9 }
  expect(priceOf(bill)).toBeCloseTo(0.3 + 3 + 0.001 + 1.6)
})
