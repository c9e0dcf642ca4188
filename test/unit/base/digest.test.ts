import { expect, test } from 'vitest'
import { hexDigest, sha256 } from '../../../src/base/digest.ts'

test('Digests equal the examples of FIPS 180-4, in lower-case hexadecimal.', async () => {
  expect(await sha256('abc')).toBe(
    'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
  )
  expect(await hexDigest('SHA-1', 'abc')).toBe('a9993e364706816aba3e25717850c26c9cd0d89d')
})

test('A text is hashed as UTF-8.', async () => {
  expect(await hexDigest('SHA-1', 'é')).toBe('bf15be717ac1b080b4f1c456692825891ff5073d')
})
