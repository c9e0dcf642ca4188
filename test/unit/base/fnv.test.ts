import { expect, test } from 'vitest'
import { fnv1a } from '../../../src/base/fnv.ts'
import { tagOf } from '../../../src/base/tag.ts'

test('The hashes of ASCII text equal the test vectors of draft-eastlake-fnv.', () => {
  const vectors = { '': 0x811c9dc5, a: 0xe40c292c, foobar: 0xbf9cf968 }
  for (const [text, hash] of Object.entries(vectors)) expect(fnv1a(text)).toBe(hash)
})

test('The tag of a policy never changes, because stored states are found by it.', () => {
  expect(tagOf('per-ip', 'fixed-window', 60_000, 'clock')).toBe('144b9ap')
})
