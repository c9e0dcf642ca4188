/** Problems of settings that use the body of a request. */
import { expect, test } from 'vitest'
import type { ConfigOptions, PolicyOptions } from '../../../../src/core/config/options.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import { bodies } from '../../../../src/features/bodies/index.ts'
import { defaultFields } from '../../../../src/features/defaults.ts'
import { graphqlCost } from '../../../../src/features/graphql/graphql.ts'
import { withDocument } from '../../../../src/features/live/stages.ts'
import { expectedBy } from '../../../support/parse.ts'

const policy = { name: 'p', limit: 10, window: '1m' } as const

const of = (
  options: Partial<PolicyOptions>,
  config: Partial<ConfigOptions> = { use: [bodies()] },
) =>
  expectedBy(() => parseConfig({ policies: [{ ...policy, ...options }], ...config }, defaultFields))

/** The problem of a field that needs bodies(). */
const needed = (path: string) => [
  `${path}: use: [bodies()], with import { bodies } from 'sluice/features'`,
]

test.each<[string, Partial<PolicyOptions>]>([
  ['key', { key: 'body:a' }],
  ['onMissingKey', { onMissingKey: { key: ['ip', 'body:a'] } }],
  ['plan', { plan: 'body:model', limits: { a: 5 } }],
  ['match', { match: { body: { a: 'b' } } }],
  ['match.not', { match: { not: { not: { body: { a: true } } } } }],
  ['cost.rules', { cost: [{ body: { a: 'b' }, cost: 2 }] }],
  ['cost.body', { cost: { body: 'n' } }],
  ['cost.graphql', { cost: { graphql: true } }],
])('A policy that uses the body in %s requires bodies.', (field, options) => {
  expect(of(options, {})).toEqual(needed(`policies[0].${field.split('.')[0]}`))
  expect(of(options, { use: [bodies({ graphql: graphqlCost() })] })).toEqual([])
})

test('A live document uses the bodies of the deployment.', () => {
  const document = { policies: [{ ...policy, key: 'body:a' }] }
  expect(
    expectedBy(() => parseConfig(withDocument(document, { policies: [] }), defaultFields)),
  ).toEqual(needed('policies[0].key'))
  expect(
    expectedBy(() =>
      parseConfig(withDocument(document, { policies: [], use: [bodies()] }), defaultFields),
    ),
  ).toEqual([])
})

test('Names and texts that only look like the body require no bodies.', () => {
  const options: Partial<PolicyOptions> = {
    key: ['query:body', 'header:body'],
    match: { header: { body: ['"body":["x"]', '"source":"body"'] } },
    limits: { body: 5 },
    plan: 'header:x',
  }
  expect(of(options, {})).toEqual([])
})

test.each<[string, string, Partial<PolicyOptions>]>([
  ['key', '$.params.name', { key: ['ip', 'body:$.params.name'] }],
  ['onMissingKey', 'a[0].b', { onMissingKey: { key: 'body:a[0].b' } }],
  ['match', '/params/name', { match: { not: { body: { '/params/name': 'x' } } } }],
  ['cost', '.n', { cost: [{ body: { '.n': 'x' }, cost: 2 }] }],
  ['cost', '', { cost: { body: '' } }],
  ['cost', 'body:n', { cost: { body: 'body:n' } }],
  ['reserve', 'a..b', { reserve: [{ match: { body: { 'a..b': true } }, share: 0.5 }] }],
])('A path in %s of another notation than ours is a problem: %j.', (field, path, options) => {
  const expected = `paths like "params.name" and "messages.0.role", not "${path}"`
  expect(of(options)).toEqual([`policies[0].${field}: ${expected}`])
})

test('Unusual names in a path are no problem.', () => {
  expect(of({ key: ['body:$schema', 'body:a-b.0.ä/ö', 'header:x'] })).toEqual([])
})

test('The lists and the shield cannot use the body.', () => {
  const list = { not: { body: { a: 'b' } } }
  const shield = { binding: 'SHIELD', limit: 10, period: '10s', key: 'body:a' } as const
  expect(of({}, { allow: list })).toEqual(needed('allow'))
  expect(of({}, { deny: list })).toEqual(needed('deny'))
  expect(of({}, { shield })).toEqual(needed('shield.key'))
  expect(of({}, { use: [bodies()], allow: list, deny: [{ path: '/' }, list], shield })).toEqual([
    'allow: no body (only policies can match a body)',
    'deny[1]: no body (only policies can match a body)',
    'shield.key: no part of the body',
  ])
})

test('A cost by the body is checked.', () => {
  expect(of({ cost: { body: 'n', max: 4, otherwise: 5 } })).toEqual([
    'policies[0].cost.max: at least 5, which a request costs otherwise',
  ])
  expect(
    of({ cost: { body: 'n', graphql: true } }, { use: [bodies({ graphql: graphqlCost() })] }),
  ).toEqual(['policies[0].cost.body: no value (graphql sets the cost)'])
  expect(of({ cost: { graphql: true } })).toEqual([
    "policies[0].cost.graphql: true only with bodies({ graphql: graphqlCost() }), from 'sluice/graphql'",
  ])
})

test.each([
  [{}],
  [{ method: '' }],
  [{ method: '**' }],
  [{ '': 'a' }],
  [{ 'a b': 'c' }],
  [JSON.parse('{"__proto__":"a"}')],
  [{ constructor: 'a' }],
  [{ a: 1 }],
  ['method'],
])('match.body %j is invalid.', (body) => {
  expect(of({ match: { body: body as never } })).toHaveLength(1)
})

test('Sizes and durations of bodies() are checked.', () => {
  for (const max of ['64kb', '1mb', '1MB', 1, 65_536, '512b']) bodies({ max: max as never })
  for (const max of ['2mb', 0, -1, 1.5, '64 kb', 'x', 2 ** 21, null]) {
    expect(expectedBy(() => bodies({ max: max as never }))).toHaveLength(1)
  }
  expect(expectedBy(() => bodies({ timeout: '2m', size: 1, graphql: {} } as never))).toHaveLength(3)
})
