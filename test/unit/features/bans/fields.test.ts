import { expect, test } from 'vitest'
import { createSluice } from '../../../../src/hosts/app/sluice.ts'
import { bans } from '../../../support/features.ts'
import { errorOf, problems, valid } from '../../../support/parse.ts'

const penalty = { after: 3, within: '1m', ban: '10s' } as const

test.each([
  ['the counter of another policy', [{ name: 'b1xnb' }, { name: 'a2ul8', penalty }], 1, 'b1xnb'],
  ['the counter of a later policy', [{ name: 'a2ul8', penalty }, { name: 'b1xnb' }], 0, 'b1xnb'],
])('Bans whose state would be mistaken for %s are refused.', (_, some, index, other) => {
  const policies = some.map((one) => ({ ...valid, ...one }))
  const [problem] = problems({ policies, use: [bans()] })
  expect(problem).toBe(
    `policies[${index}].name: a name whose hash differs from that of "${other}" | "a2ul8"`,
  )
  const { penalty: _penalty, ...without } = policies[index]!
  expect(problems({ policies: policies.with(index, without), use: [bans()] })).toEqual([])
})

test('One error has the problems of fields of features and of the core.', () => {
  const policies = [{ ...valid, limit: 0, penalty: { ...penalty, after: 0 } }]
  const expected = [
    'policies[0].limit: a whole number of at least 1 | 0',
    'policies[0].penalty.after: a whole number of at least 1 | 0',
  ]
  expect(problems({ policies })).toEqual(expected)
  expect(problems({ policies, use: [bans()] })).toEqual(expected)
})

test('An app gets the same error as a gateway.', () => {
  const policies = [{ ...valid, penalty: 'always' as never }]
  const error = errorOf(() => createSluice({ clientAddress: 'socket', policies }))
  expect(error?.problems.map(({ path, expected }) => `${path}: ${expected}`)).toEqual([
    'policies[0].penalty: "manual", or an object with after, within, ban and max',
  ])
})
