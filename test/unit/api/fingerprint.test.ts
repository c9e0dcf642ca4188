/** Fingerprints of calls with an `Idempotency-Key`. While a deployment rolls out, isolates of two versions compare them. */

import { expect, test } from 'vitest'
import { idempotencyOf } from '../../../src/api/idempotency.ts'
import { turns } from '../../../src/features/turns/index.ts'
import { createMatcher } from '../../support/create-matcher.ts'
import { overrides } from '../../support/features.ts'

const policy = { limit: 5, window: '1m', key: 'global' } as const
const call = new Request('https://app.example/_sluice/v1/decide', {
  headers: { 'idempotency-key': 'k1' },
})

test.each([
  ['no bans', { ...policy, name: 'one' }, '07fb422b3abbb3b17deee5447d84511e'],
  [
    'bans by operators',
    { ...policy, name: 'two', penalty: 'manual' },
    '8af30ef4c553c626300f4c98e7e4da87',
  ],
  [
    'bans after refusals',
    { ...policy, name: 'three', penalty: { after: 2, within: '1m', ban: '5s' } },
    '395d3230a23abd84dd92359327e8892d',
  ],
] as const)(
  'A call to a policy with %s has the fingerprint of earlier versions.',
  async (_, policy, fingerprint) => {
    const matched = await createMatcher({ policies: [policy] })('/')
    const body = { policy: policy.name, key: [null] }
    const found = await idempotencyOf(call, 'caller', body, [{ matched }])
    expect(found).toMatchObject({ fingerprint })
  },
)

test('A call has another fingerprint once its policy lets requests wait, or operators set limits.', async () => {
  const fingerprintOf = async (change: object) => {
    const policies = [{ ...policy, name: 'one', ...change }]
    const use = [turns(), overrides()]
    const matched = await createMatcher({ policies, use })('/')
    const found = await idempotencyOf(call, 'caller', {}, [{ matched }])
    return (found as { fingerprint: string }).fingerprint
  }
  const all = await Promise.all([{}, { wait: '2s' }, { overrides: true }].map(fingerprintOf))
  expect(new Set(all).size).toBe(3)
})
