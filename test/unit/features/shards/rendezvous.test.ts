import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { rendezvous } from '../../../../src/features/shards/rendezvous.ts'

const SUBJECTS = 20_000
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
])('rendezvous hashing of %s subjects', (_, subjects) => {
  test.each([2, 3, 4, 7, 16, 64])(
    'Each of %i shards gets its fair share of the subjects.',
    (count) => {
      for (const prefix of ['db-', '', 'a-name-that-is-rather-long-']) {
        const shardOf = rendezvous(named(count, prefix))
        const shares = Array<number>(count).fill(0)
        for (const subject of subjects) shares[shardOf(subject)]!++
        // Five standard deviations of a fair draw.
        const fair = SUBJECTS / count
        const off = Math.max(...shares.map((share) => Math.abs(share - fair)))
        expect(off).toBeLessThan(5 * Math.sqrt(fair))
      }
    },
  )

  test.each([1, 2, 3, 4, 15])(
    'One more shard beside %i takes its fair share, and no other subject moves.',
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
      const share = 1 / (count + 1)
      const deviation = Math.sqrt((share * (1 - share)) / SUBJECTS)
      expect(Math.abs(moved / SUBJECTS - share)).toBeLessThan(5 * deviation)
    },
  )
})

test('The order of the shard names does not change the shard of a subject.', () => {
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

test('The hash assigns known subjects to the same shards as in earlier versions.', () => {
  const shardOf = rendezvous(['eu-1', 'eu-2', 'eu-3'])
  const of = (subjects: string[]) => subjects.map(shardOf).join('')
  expect(of(['5pVnR3mXkq0aZt1B', 'ip=2001:db8::/64', 'ü', ''])).toBe('0110')
  expect(of(plain.slice(0, 32))).toBe('00202201210111011110111112222202')
})
