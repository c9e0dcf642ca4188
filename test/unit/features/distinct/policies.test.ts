/** Policies with `distinct`: what they accept, and the values that they find in a request. */

import { describe, expect, test } from 'vitest'
import type { PolicyOptions } from '../../../../src/core/config/options.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import { bodies } from '../../../../src/features/bodies/index.ts'
import { defaultFields } from '../../../../src/features/defaults.ts'
import { createAppLimiter } from '../../../../src/hosts/app/app-limiter.ts'
import { createMatcher } from '../../../support/create-matcher.ts'
import { distinct, leases } from '../../../support/features.ts'
import { expectedBy } from '../../../support/parse.ts'

const policy = {
  name: 'names',
  limit: 5,
  window: '1h',
  distinct: 'header:x-user',
} as const satisfies PolicyOptions

const problems = (change: object, use: unknown[] = []) =>
  expectedBy(() => createAppLimiter({ policies: [{ ...policy, ...change }], use } as never))
const NOT_KNOWN = 'no value (distinct counts each value from its last use)'

test.each<[field: string, change: object, expected: string]>([
  ['algorithm', { algorithm: 'fixed-window' }, NOT_KNOWN],
  ['algorithm', { algorithm: 'sliding-log' }, NOT_KNOWN],
  ['algorithm', { algorithm: 'gcra' }, NOT_KNOWN],
  ['cost', { cost: 2 }, 'no value (each different value costs 1)'],
  ['cost', { cost: [{ path: '/a', cost: 0 }] }, 'no value (each different value costs 1)'],
  ['cost', { cost: { header: 'x-cost' } }, 'no value (each different value costs 1)'],
  ['limit', { limit: 10_001 }, 'at most 10000 with distinct'],
  [
    'limits.pro',
    { limits: { pro: 10_001, free: 10_000 }, plan: 'header:x-plan' },
    'at most 10000 with distinct',
  ],
  [
    'lease',
    { lease: { max: 2, ttl: '1s' } },
    'no value (an isolate does not know which values count)',
  ],
  [
    'distinct',
    { key: ['ip', 'header:X-User'] },
    'a part that key does not have (each value would have a quota of its own)',
  ],
])('%s: %j is an error that says what to write.', (field, change, expected) => {
  const use = [distinct(), leases()]
  expect(problems(change, use)).toContain(`policies[0].${field}: ${expected}`)
})

test('A limit that a claim sets is at most 10,000.', () => {
  const limit = { claim: 'names', max: 10_001, otherwise: 5 }
  expect(problems({ limit }, [distinct()])).toContain(
    'policies[0].limit.max: at most 10000 with distinct',
  )
})

test('A policy with a value of the body or of a token needs the feature that reads it.', () => {
  const needed = (name: string) =>
    `policies[0].distinct: use: [${name}()], with import { ${name} } from 'sluice/features'`
  expect(problems({ distinct: 'body:username' }, [distinct()])).toEqual([needed('bodies')])
  expect(problems({ distinct: 'jwt:sub' }, [distinct()])).toEqual([needed('jwt')])
})

test.each<[object]>([
  [{}],
  [{ limit: 10_000 }],
  [{ key: 'global', countOnly: 401, mode: 'shadow', onStoreError: 'deny' }],
  [{ penalty: 'manual', overrides: true, reserve: [{ match: { path: '/a' }, share: 0.5 }] }],
  [{ cost: 1 }],
])('%j is valid.', (change) => {
  const config = { policies: [{ ...policy, ...change }], use: [distinct()] }
  const [parsed] = parseConfig(config, defaultFields).policies
  expect(parsed!.algorithm).toBe('distinct')
  expect(parsed!.distinct).toEqual({ source: 'header', name: 'x-user' })
})

/** The quotas of a request, as `key: values (cost)`, or why the policy does not apply. */
async function counted(change: Partial<PolicyOptions>, body?: unknown, headers = {}) {
  const match = createMatcher({
    policies: [{ ...policy, key: 'header:x-office', ...change }],
    use: [bodies(), distinct()],
  })
  const {
    denied,
    policies,
    unmet = [],
  } = await match('/login', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-office': 'a', ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  if (denied) return denied
  if (unmet[0]) return unmet.map((one) => one.unmet)
  return policies.map((one) => {
    const values = one.distinct!.map(([, value, fault]) => value ?? fault ?? 'missing')
    return `${one.partitionKey.map(([, value]) => value)}: ${values} (${one.cost})`
  })
}

describe('The values of a request', () => {
  test('A header is a value, and no part of the key.', async () => {
    expect(await counted({}, undefined, { 'x-user': 'ann' })).toEqual(['a: ann (1)'])
  })

  test('A missing value is treated as onMissingKey says.', async () => {
    expect(await counted({})).toEqual(['a: missing (1)'])
    expect(await counted({ onMissingKey: 'skip' })).toEqual(['key'])
    expect(await counted({ onMissingKey: 'refuse' })).toEqual({
      by: 'names',
      missing: 'header:x-user',
    })
    expect(await counted({ onMissingKey: { key: 'path' } })).toEqual(['/login: missing (1)'])
  })

  test('Another key keeps the value.', async () => {
    const change = { key: 'header:x-none', onMissingKey: { key: 'path' } } as const
    expect(await counted(change, undefined, { 'x-user': 'ann' })).toEqual(['/login: ann (1)'])
  })

  test('The messages of a body have the values of all, each once.', async () => {
    const names = ['ann', 'bob', 'ann'].map((username) => ({ username }))
    expect(await counted({ distinct: 'body:username' }, names)).toEqual(['a: ann,bob (2)'])
    expect(await counted({ distinct: 'body:username' }, names[0])).toEqual(['a: ann (1)'])
  })

  test('Messages without a value have none in common.', async () => {
    const body = [{ username: 'ann' }, {}, {}]
    expect(await counted({ distinct: 'body:username' }, body)).toEqual([
      'a: ann,missing,missing (3)',
    ])
  })

  test('A value that is there twice is unreadable, and a body that cannot be read too.', async () => {
    const change = { distinct: 'body:username' } as const
    const twice = '{ "username": "ann", "username": "bob" }'
    expect(await counted(change, twice)).toEqual(['a: unreadable (1)'])
    expect(await counted(change, '{')).toEqual(['a: unreadable (1)'])
  })

  test('More messages than can be read cost one unit each.', async () => {
    const body = Array.from({ length: 101 }, (_, n) => ({ username: `user${n}` }))
    expect(await counted({ distinct: 'body:username' }, body)).toEqual(['a: unreadable (101)'])
  })

  test('The readings of a path are values of one request.', async () => {
    const match = createMatcher({
      policies: [{ ...policy, key: 'global', distinct: 'path', cost: 1 }],
      use: [distinct()],
    })
    const { policies } = await match('/a%2Fb')
    const [found] = policies
    expect(policies).toHaveLength(1)
    expect(found!.distinct!.length).toBeGreaterThan(1)
    expect(found!.cost).toBe(found!.distinct!.length)
  })
})

test('Each spelling of a counted value is another value, while the key has one for all spellings.', async () => {
  const match = createMatcher({
    policies: [{ ...policy, key: 'header:x-site', distinct: 'header:x-user' }],
    use: [distinct()],
  })
  const seen = async (site: string, user: string) => {
    const { policies } = await match('/', { headers: { 'x-site': site, 'x-user': user } })
    return policies.map((one) => [one.partitionKey[0]![1], one.distinct![0]![1]])
  }
  expect(await seen('Shop', 'Ann')).toEqual([['shop', 'Ann']])
  expect(await seen('shop', 'ann')).toEqual([['shop', 'ann']])
})
