import { expect, test } from 'vitest'
import { sha256 } from '../../../src/base/digest.ts'

test('A digest equals the example of FIPS 180-4, in lower-case hexadecimal.', async () => {
  expect(await sha256('abc')).toBe(
    'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
  )
})

test('A text is hashed as UTF-8.', async () => {
  expect(await sha256('é')).toBe('4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c')
})
