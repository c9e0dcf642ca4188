import { expect, test } from 'vitest'
import { bundleSize } from '../../dev/build.ts'

test('The Worker without policies of its own has at most 98 KiB, compressed.', async () => {
  expect(await bundleSize('dev/any-config.ts')).toBeLessThanOrEqual(98 * 1024)
})
