/** Rules of `reserve` with conditions on the body. */
import { expect, test } from 'vitest'
import type { ConfigOptions } from '../../../../src/core/config/options.ts'
import { bodies } from '../../../../src/features/bodies/index.ts'
import { createMatcher } from '../../../support/create-matcher.ts'

const paid = { body: { model: 'paid' } }
const reserve = [
  { match: paid, share: 0 },
  { match: { body: { model: 'batch*' } }, share: 0.5 },
  { share: 0.2 },
]

/** The floor of each quota that a body selects. */
async function floors(raw: string, policy: Partial<ConfigOptions['policies'][number]> = {}) {
  const match = createMatcher({
    policies: [{ name: 'p', limit: 100, window: '1m', key: 'global', reserve, ...policy }],
    use: [bodies()],
  })
  const headers = { 'content-type': 'application/json' }
  const { policies } = await match('/', { method: 'POST', body: raw, headers })
  return policies.map(({ floor = 0 }) => floor)
}

test.each([
  ['{"model":"paid"}', 0],
  ['{"model":"batch-1"}', 50],
  ['{"model":"other"}', 20],
  ['{}', 20],
])('The body %s must leave the floor of its rule free.', async (raw, floor) => {
  expect(await floors(raw)).toEqual([floor])
})

test('A body that cannot be read gets the largest floor of the rules that may match.', async () => {
  expect(await floors('{"model":"paid","model":"batch"}')).toEqual([50])
  expect(await floors('{', { reserve: [{ match: paid, share: 0 }] })).toEqual([0])
  expect(await floors('{', { reserve: [{ match: { not: paid }, share: 0.3 }] })).toEqual([30])
})

test('Messages that select one quota get the largest of their floors.', async () => {
  const batch = '[{"model":"paid"},{"model":"batch"},{"model":"other"}]'
  expect(await floors(batch)).toEqual([50])
  expect(await floors(batch, { key: 'body:model' })).toEqual([0, 50, 20])
  expect(await floors('[{"model":"paid"},{"model":"paid"}]')).toEqual([0])
})

test('The floor of a batch is the largest share, of the smallest plan.', async () => {
  const plans: Partial<ConfigOptions['policies'][number]> = {
    plan: 'body:plan',
    limits: { small: 10 },
    reserve: [{ match: { body: { plan: 'large' } }, share: 0.9 }],
  }
  expect(await floors('[{"plan":"large"},{"plan":"small"}]', plans)).toEqual([9])
})
