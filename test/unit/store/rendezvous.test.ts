import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { rendezvous } from '../../../src/store/shards/rendezvous.ts'

const SUBJECTS = 100_000
const hashed = Array.from({ length: SUBJECTS }, () =>
  btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(12)))),
)
const plain = Array.from(
  { length: SUBJECTS },
  (_, n) => `ip=10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`,
)
const named = (count: number, prefix: string) =>
  Array.from({ length: count }, (_, n) => `${prefix}${n + 1}`)

describe.each([
  ['hashed', hashed],
  ['plain', plain],
])('of 100,000 subjects, %s,', (_, subjects) => {
  test.each([2, 3, 4, 7, 16, 64])('each of %i has its share', (count) => {
    for (const prefix of ['db-', '', 'a-name-that-is-rather-long-']) {
      const placeOf = rendezvous(named(count, prefix))
      const shares = Array<number>(count).fill(0)
      for (const subject of subjects) shares[placeOf(subject)]!++
      // Five standard deviations of a fair draw.
      const fair = SUBJECTS / count
      const off = Math.max(...shares.map((share) => Math.abs(share - fair)))
      expect(off).toBeLessThan(5 * Math.sqrt(fair))
    }
  })

  test.each([1, 2, 3, 4, 15])(
    'one more beside %i takes its own share, and nobody else moves',
    (count) => {
      const before = rendezvous(named(count, 'eu-'))
      const after = rendezvous(named(count + 1, 'eu-'))
      let moved = 0
      for (const subject of subjects) {
        const [from, to] = [before(subject), after(subject)]
        if (from === to) continue
        expect(to).toBe(count)
        moved++
      }
      expect(Math.abs(moved / SUBJECTS - 1 / (count + 1))).toBeLessThan(0.01)
    },
  )
})

test('the order of the names does not matter', () => {
  const names = fc.uniqueArray(fc.stringMatching(/^[a-z0-9-]{1,32}$/), {
    minLength: 2,
    maxLength: 64,
  })
  fc.assert(
    fc.property(names, fc.string(), fc.infiniteStream(fc.nat()), (some, subject, order) => {
      const others = some
        .map((name) => [order.next().value!, name] as const)
        .sort(([a], [b]) => a - b)
        .map(([, name]) => name)
      expect(others[rendezvous(others)(subject)]).toBe(some[rendezvous(some)(subject)])
    }),
  )
})

test('what it says today it says tomorrow', () => {
  const placeOf = rendezvous(['eu-1', 'eu-2', 'eu-3'])
  const of = (subjects: string[]) => subjects.map(placeOf).join('')
  expect(of(['5pVnR3mXkq0aZt1B', 'ip=2001:db8::/64', 'ü', ''])).toBe('0110')
  expect(of(plain.slice(0, 32))).toBe('00202201210111011110111112222202')
})
