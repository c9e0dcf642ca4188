/** Verified requests of a policy with `distinct`. */

import { expect, test } from 'vitest'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import { verifiedBy } from '../../../../src/features/verify/verified.ts'
import { distinct } from '../../../support/features.ts'

test('Each verified request counts as another value, whatever value it has, and a stated cost as several.', () => {
  const { policies } = parseConfig({
    policies: [{ name: 'names', limit: 5, window: '1h', distinct: 'header:x-user' }],
    use: [distinct()],
  })
  const match = {
    terms: policies[0]!,
    partitionKey: [['ip', '192.0.2.1'] as [string, string]],
    distinct: [['header:x-user', 'ann'] as [string, string]],
    cost: 1,
  }
  const claim = { nonce: 'a-nonce-of-a-test', count: 1, at: 0, policy: 'names', cost: 3 }
  const marked = verifiedBy(claim).mark({ policies: [match] }).policies
  expect(marked).toMatchObject([
    {
      partitionKey: [
        ['ip', '192.0.2.1'],
        ['verify', 'a-nonce-of-a-test'],
      ],
      distinct: [['header:x-user', undefined]],
      cost: 3,
    },
  ])
})
