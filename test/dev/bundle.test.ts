import { expect, test } from 'vitest'
import { bundleSize } from '../../dev/build.ts'

test('The Worker without policies of its own has at most 99 KiB, compressed.', async () => {
  expect(await bundleSize('dev/any-config.ts')).toBeLessThanOrEqual(99 * 1024)
})
