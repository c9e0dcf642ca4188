import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import { FIELD, signed } from '../../../../src/features/verify/field.ts'
import { fingerprints } from '../../../../src/features/verify/fingerprint.ts'
import { verify } from '../../../../src/features/verify/index.ts'
import { createAllowance } from '../../../../src/features/verify/verified.ts'

const TOKEN = 'a-token-to-verify-with'
const MINUTE = 60_000
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: 1_000 * MINUTE }))
afterEach(() => void vi.useRealTimers())

test('An isolate verifies 2,000 requests in a minute, and as many in the next.', () => {
  const allowance = createAllowance()
  const taken = (now: number) =>
    Array.from({ length: 2_100 }, () => allowance.takes(now)).filter(Boolean).length
  expect([taken(MINUTE), taken(2 * MINUTE - 1), taken(2 * MINUTE)]).toEqual([2_000, 0, 2_000])
})

test('Above this number the field has no effect.', async () => {
  const { verify: recognize } = verify().compile!({
    config: parseConfig({ policies: [] }),
    log() {},
  })
  const field = await signed({ nonce: 'a-nonce-of-this-test', count: 1, at: Date.now() }, TOKEN)
  const request = new Request('https://example.com/', { headers: { [FIELD]: field } })
  const ask = async () => (await recognize!(request, { SLUICE_VERIFY_TOKEN: TOKEN })) !== undefined
  const answers: boolean[] = []
  for (let count = 0; count <= 2_000; count += 1) answers.push(await ask())
  expect(answers.indexOf(false)).toBe(2_000)
})

test('A fingerprint changes with a term or a field, and not with a function or a report.', async () => {
  const policy = { name: 'all', limit: 5, window: '1h', key: () => 'one' } as const
  const of = (more: object = {}, own: object = {}) =>
    fingerprints(parseConfig({ policies: [{ ...policy, ...own }], ...more }))
  const one = await of()
  expect(await of({ use: [verify()] }, { key: () => 'other' })).toEqual(one)
  const terms = await of({}, { limit: 6 })
  expect(terms.others).toBe(one.others)
  expect(terms.policies.all).not.toBe(one.policies.all)
  const field = await of({ namespace: 'other' })
  expect(field.policies).toEqual(one.policies)
  expect(field.others).not.toBe(one.others)
})
