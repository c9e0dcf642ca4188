/** A body that servers read in several ways counts in the strictest one. */
import { describe, expect, test } from 'vitest'
import type { PolicyOptions } from '../../../../src/core/config/options.ts'
import { bodies } from '../../../../src/features/bodies/index.ts'
import { graphqlCost } from '../../../../src/features/graphql/graphql.ts'
import { createMatcher } from '../../../support/create-matcher.ts'

const post = (body: unknown): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
})

/** The cost of each quota that a policy charges for a request. */
async function costs(policy: Partial<PolicyOptions>, url: string, init: RequestInit) {
  const match = createMatcher({
    policies: [{ name: 'p', limit: 1_000_000, window: '1m', key: 'global', ...policy }],
    use: [bodies({ graphql: graphqlCost() })],
  })
  const { policies } = await match(url, init)
  return policies.map(({ cost }) => cost)
}

describe('The cost of a GraphQL request', () => {
  const CHEAP = '{ a }'
  const LIST = 'query($n: Int = 1) { a(first: $n) { b } }'
  const cost = { graphql: true, max: 9_999 } as const
  const url = (...pairs: [string, unknown][]) =>
    `/graphql?${pairs.map(([name, value]) => `${name}=${encodeURIComponent(typeof value === 'string' ? value : JSON.stringify(value))}`).join('&')}`

  test.each<[string, string, object, number]>([
    ['the document in the body', '/graphql', { query: LIST, variables: { n: 50 } }, 51],
    ['variables of the URL', url(['variables', { n: 50 }]), { query: LIST }, 51],
    ['variables of the body', url(['query', LIST]), { variables: { n: 50 } }, 51],
    [
      'the larger variables',
      url(['query', LIST], ['variables', { n: 2 }]),
      { query: CHEAP, variables: { n: 50 } },
      51,
    ],
    ['the document that Rails reads', '/graphql?[query]={a%20b%20c%20d}', { query: CHEAP }, 4],
    ['a size that is a text', '/graphql', { query: LIST, variables: { n: '500' } }, 501],
    ['the last of two documents', url(['query', CHEAP], ['query', '{ a b c d }']), {}, 4],
    ['the first of two documents', url(['query', '{ a b c d }'], ['query', CHEAP]), {}, 4],
    [
      'the larger of two variables',
      url(['query', LIST], ['variables', { n: 50 }], ['variables', { n: 2 }]),
      {},
      51,
    ],
    ['no document', url(['variables', { n: 2 }]), {}, 9_999],
    ['an unreadable document', url(['query', '{']), { query: CHEAP }, 9_999],
    ['a variable that is null', '/graphql', { query: LIST, variables: { n: null } }, 101],
    ['a negative variable', '/graphql', { query: LIST, variables: { n: -1 } }, 101],
    ['a negative literal', '/graphql', { query: '{ a(first: -1) { b } }' }, 101],
    [
      'a negative default',
      '/graphql',
      { query: 'query($n: Int = -1) { a(first: $n) { b } }' },
      101,
    ],
    [
      'a name twice in the variables',
      '/graphql',
      { query: LIST, variables: '{"n":50,"n":1}' },
      9_999,
    ],
    [
      'more pairs than are read',
      url(...Array.from({ length: 17 }, (_, n): [string, string] => ['query', `{ a${n} }`])),
      {},
      9_999,
    ],
  ])('counts %s.', async (_, path, body, units) => {
    expect(await costs({ cost }, path, post(body))).toEqual([units])
  })
})

describe('A JSON-RPC batch', () => {
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'a' } }

  test.each([
    [100, undefined, 100],
    [101, undefined, 101],
    [700, undefined, 700],
    [101, 100, 10_100],
  ])('of %i calls, with max %s, costs %i units.', async (size, max, units) => {
    const policy = { match: { body: { method: 'tools/call' } }, ...(max && { cost: { max } }) }
    expect(await costs(policy, '/mcp', post(Array(size).fill(call)))).toEqual([units])
  })

  test('counts once in a policy that does not read the body.', async () => {
    expect(await costs({}, '/mcp', post(Array(101).fill(call)))).toEqual([1])
  })
})
