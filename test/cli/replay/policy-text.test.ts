import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { policyText, shadowPolicy } from '../../../cli/replay/suggest/policy-text.ts'
import type { PolicyOptions } from '../../../src/core/config/options.ts'
import { anyCharacter } from '../../support/any-text.ts'

const evaluated = (text: string) => new Function(`return [${text}]`)()[0]

describe('The text of a suggested policy', () => {
  test('A short policy is one line.', () => {
    const policy = shadowPolicy(
      { name: 'per-ip', limit: 1, window: '1m' },
      { limit: 93, window: '1m' },
      [],
    )
    expect(policyText(policy)).toBe("{ name: 'per-ip', limit: 93, window: '1m', mode: 'shadow' },")
  })

  test('A long policy has a line for each field.', () => {
    const policy: PolicyOptions = {
      name: 'login',
      limit: 5,
      window: '1m',
      match: { path: ['/login', "/it's/*"], method: 'POST' },
      onStoreError: 'deny',
      cost: { rules: [{ path: '/login', cost: 2 }], otherwise: 1 },
    }
    expect(policyText(policy)).toBe(`{
  name: 'login',
  limit: 5,
  window: '1m',
  match: { path: ['/login', '/it\\'s/*'], method: 'POST' },
  onStoreError: 'deny',
  cost: { rules: [{ path: '/login', cost: 2 }], otherwise: 1 },
},`)
  })

  test('The text is TypeScript that means the same policy.', () => {
    const values = fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
    )
    const names = fc.string({ minLength: 1 }).filter((name) => name !== '__proto__')
    const policies = fc.dictionary(
      names,
      fc.oneof(values, fc.array(values), fc.dictionary(names, values)),
    )
    fc.assert(
      fc.property(policies, (policy) => {
        const plain = JSON.parse(JSON.stringify(policy))
        expect(evaluated(policyText(plain))).toEqual(plain)
      }),
      { numRuns: 40 },
    )
  })
})

describe('A suggested policy', () => {
  test('It counts the same requests, without what belongs to another quota.', () => {
    const written: PolicyOptions = {
      name: 'login',
      algorithm: 'token-bucket',
      limit: 5,
      burst: 10,
      window: '1h',
      match: { path: '/login' },
      key: ['ip', 'host'],
      penalty: { after: 3, within: '1m', ban: '1h' },
      onStoreError: 'deny',
    }
    expect(shadowPolicy(written, { limit: 7, window: '1m' }, ['login', 'login-suggested'])).toEqual(
      {
        name: 'login-suggested-2',
        limit: 7,
        window: '1m',
        match: { path: '/login' },
        key: ['ip', 'host'],
        mode: 'shadow',
        onStoreError: 'deny',
      },
    )
  })

  test('Its name has at most 64 characters.', () => {
    const name = `${'x'.repeat(54)}-suggested`
    const written = { name, limit: 1, window: '1m' } as const
    expect(shadowPolicy(written, { limit: 2, window: '1m' }, [name]).name).toBe(
      `${'x'.repeat(52)}-suggested-2`,
    )
  })
})
