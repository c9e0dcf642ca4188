/** Limits of a token that belong to another key. */
import { expect, test } from 'vitest'
import { lint } from '../../../src/lint/lint.ts'
import { jwt, one, testFindings } from '../../support/lint.ts'

const limit = { claim: 'rate', max: 1000, otherwise: 10 }

testFindings({
  'A limit comes from a token, and the key does not.': [
    'claim-of-other-key policies[0].key',
    { ...one({ limit }), use: [jwt] },
    { ...one({ limit, key: ['jwt:sub', 'ip'] }), use: [jwt] },
  ],
  'A sliding log may have a large limit by a claim.': [
    'large-log policies[0].limit.max',
    {
      ...one({ limit: { ...limit, max: 1001 }, key: 'jwt:sub', algorithm: 'sliding-log' }),
      use: [jwt],
    },
    { ...one({ limit, key: 'jwt:sub', algorithm: 'sliding-log' }), use: [jwt] },
  ],
})

test('A shield must admit the largest limit of a claim.', () => {
  const shield = { binding: 'SHIELD', limit: 1500, period: '10s', key: 'jwt:sub' }
  const found = lint({
    use: [jwt],
    shield,
    policies: [{ name: 'a', limit, window: '10s', key: 'jwt:sub' }],
  })
  expect(found.map(({ code, path }) => `${code} ${path}`)).toEqual(['tight-shield shield.limit'])
  expect(found[0]!.message).toContain('may admit 2000')
})
