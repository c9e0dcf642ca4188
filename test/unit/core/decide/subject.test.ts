import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Part } from '../../../../src/core/base/part.ts'
import { hashedSubjects } from '../../../../src/core/decide/subject.ts'

const parts = fc.array(
  fc.tuple(
    fc.constantFrom('ip', 'header:a', 'header:ab'),
    fc.option(fc.string({ maxLength: 4 }), { nil: undefined }),
  ),
  { minLength: 1, maxLength: 3 },
)

test('Two different lists of parts never have the same subject.', async () => {
  const name = hashedSubjects('secret')
  await fc.assert(
    fc.asyncProperty(parts, parts, async (a, b) => {
      const same =
        JSON.stringify(a.map(([l, v]) => [l, v ?? null])) ===
        JSON.stringify(b.map(([l, v]) => [l, v ?? null]))
      expect((await name(a as Part[])) === (await name(b as Part[]))).toBe(same)
    }),
    { numRuns: 500 },
  )
})

test('Parts that are equal when joined have different subjects, and so do missing and empty parts.', async () => {
  const name = hashedSubjects('secret')
  const subjects = await Promise.all(
    (
      [
        [
          ['x', 'a'],
          ['x', 'bc'],
        ],
        [
          ['x', 'ab'],
          ['x', 'c'],
        ],
        [
          ['x', ''],
          ['x', 'abc'],
        ],
        [
          ['x', undefined],
          ['x', 'abc'],
        ],
        [
          ['x', 'null'],
          ['x', 'abc'],
        ],
      ] as Part[][]
    ).map(name),
  )
  expect(new Set(subjects).size).toBe(5)
})

test('A hashed subject has 16 characters for any value, and changes with the secret.', async () => {
  const part: Part[] = [['header:x', '\ud800 🚰'.repeat(4000)]]
  const one = await hashedSubjects('one')(part)
  expect(one).toMatch(/^[\w-]{16}$/)
  expect(await hashedSubjects('one')(part)).toBe(one)
  expect(await hashedSubjects('two')(part)).not.toBe(one)
})

test('A hashed subject is HMAC-SHA-256 cut to 96 bits.', async () => {
  const { createHmac } = await import('node:crypto')
  const expected = createHmac('sha256', 'secret')
    .update('[["ip","203.0.113.7"]]')
    .digest('base64url')
    .slice(0, 16)
  expect(await hashedSubjects('secret')([['ip', '203.0.113.7']])).toBe(expected)
})
