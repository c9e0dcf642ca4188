import { expect, test } from 'vitest'
import type { Part } from '../../../../src/core/base/part.ts'
import { hashedSubjects } from '../../../../src/core/decide/subject.ts'
import { labelOf } from '../../../../src/features/observe/binding.ts'

const hash = hashedSubjects('a secret')
const ip = (value: string): Part[] => [['ip', value]]
const user: Part[] = [['header:x-user', 'ann']]
const hashed = /^[\w-]{16}$/

test('By default a client is named by the hash of its key, which is its subject in Redis.', async () => {
  const label = await labelOf('hashed', ip('203.0.113.7'), hash)
  expect(label).toMatch(hashed)
  expect(label).toBe(await hash(ip('203.0.113.7')))
  expect(labelOf('hashed', ip('203.0.113.7'), hash)).toBe(label) // known at once
})

test('With none no client is named.', () => {
  expect(labelOf('none', ip('203.0.113.7'), hash)).toBeUndefined()
})

test('With plain a client is named by the values of its key, unless one is unusual.', async () => {
  expect(labelOf('plain', ip('203.0.113.7'), hash)).toBe('ip=203.0.113.7')
  expect(labelOf('plain', [...ip('203.0.113.7'), ...user], hash)).toBe(
    'ip=203.0.113.7,header:x-user=ann',
  )
  expect(await labelOf('plain', [['path', '/a b']], hash)).toMatch(hashed)
  const both: Part[] = [...ip('2001:db8::/64'), ['header:x-user', 'ann@example.com']]
  expect(labelOf('plain', both, hash)).toBe('ip=2001:db8::/64,header:x-user=ann@example.com')
  for (const value of ['a,b', 'a=b', '}{', 'x'.repeat(65), '', undefined])
    expect(await labelOf('plain', [['ip', value]], hash)).toMatch(hashed)
})
