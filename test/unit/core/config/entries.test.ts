/** Fields that another entry of the package makes: a configuration that needs one names its import. */
import { expect, test } from 'vitest'
import { jwt } from '../../../../src/features/jwt/index.ts'
import { leases } from '../../../../src/features/leases/index.ts'
import { overrides } from '../../../../src/features/overrides/index.ts'
import { cluster, shards } from '../../../../src/features/shards/index.ts'
import { problems, shield, valid } from '../../../support/parse.ts'

const limit = { claim: 'rate', max: 9, otherwise: 1 }
const made = { jwt: jwt({ secret: 'JWT_SECRET' }), leases: leases(), overrides: overrides() }

test.each<[keyof typeof made, object, object?]>([
  ['jwt', { key: 'jwt:sub' }],
  ['jwt', { key: ['ip', 'jwt:sub'] }],
  ['jwt', { onMissingKey: { key: 'jwt:sub' } }],
  ['jwt', { limits: { pro: 9 }, plan: 'jwt:plan' }],
  ['jwt', { limits: { pro: 9 }, plan: { key: 'jwt:sub', table: 'a' } }, { tables: { a: {} } }],
  ['jwt', { limit }],
  ['jwt', {}, { shield: { ...shield, key: 'jwt:sub' } }],
  ['leases', { lease: { max: 10, ttl: '1s' } }],
  ['overrides', { overrides: true }],
])('A configuration needs %s for %j and %j.', (name, policy, rest = {}) => {
  const config = { policies: [{ ...valid, ...policy }], ...rest }
  const expected = `the result of ${name}() from 'sluice/${name}'`
  expect(problems(config)).toEqual([`${name}: ${expected} | nothing`])
  expect(problems({ ...config, [name]: true })).toEqual([expect.stringContaining(expected)])
  expect(problems({ ...config, ...made })).toEqual([])
  const wrong = [{ ...valid, limit: 0, ...policy }]
  if (!('limit' in policy)) {
    expect(problems({ ...config, policies: wrong })).toContain(`${name}: ${expected} | nothing`)
  }
})

test('A text that names a claim needs no jwt.', () => {
  const refusal = () => new Response('"source":"jwt"')
  const match = { header: { 'x-a': '"source":"jwt"' } }
  expect(problems({ policies: [{ ...valid, match, refusal, key: 'header:jwt' }] })).toEqual([])
})

test('The results of cluster() and shards() are not accepted in place of each other.', () => {
  const policies = [valid]
  expect(problems({ policies, shards: cluster() })).toEqual([
    expect.stringContaining("shards: the result of shards() from 'sluice/shards'"),
  ])
  expect(problems({ policies, cluster: shards(['a', 'b']) })).toEqual([
    expect.stringContaining("cluster: the result of cluster() from 'sluice/shards'"),
  ])
})
