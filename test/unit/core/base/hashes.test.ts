import { expect, test } from 'vitest'
import { sha256 } from '../../../../src/core/base/digest.ts'
import { fnv1a, tagOf } from '../../../../src/core/base/fnv.ts'

test('A digest equals the example of FIPS 180-4, in lower-case hexadecimal, and a text is hashed as UTF-8.', async () => {
  expect(await sha256('abc')).toBe(
    'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
  )
  expect(await sha256('é')).toBe('4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c')
})

test('The hashes of ASCII text equal the test vectors of draft-eastlake-fnv.', () => {
  const vectors = { '': 0x811c9dc5, a: 0xe40c292c, foobar: 0xbf9cf968 }
  for (const [text, hash] of Object.entries(vectors)) expect(fnv1a(text)).toBe(hash)
})

test('The tag of a policy never changes, because stored states are found by it.', () => {
  expect(tagOf('per-ip', 'fixed-window', 60_000, 'clock')).toBe('144b9ap')
})
