import { expect, test } from 'vitest'
import { checkSizes } from '../../dev/size/check.ts'
import { workerLimit } from '../../dev/size/limits.ts'

test('The Worker is within its limit, compressed.', async () => {
  expect((await checkSizes([workerLimit])).problems).toEqual([])
})
