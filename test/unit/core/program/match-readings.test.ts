import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { PolicyOptions } from '../../../../src/core/config/options.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import { pathMatcher, readings } from '../../../../src/core/request/path.ts'
import { RequestView } from '../../../../src/core/request/view.ts'
import { defaultFields } from '../../../../src/features/defaults.ts'
import { createMatcher, matcherOf } from '../../../support/create-matcher.ts'

import { base, met, names } from '../../../support/match.ts'

describe('a path with several readings', () => {
  const api = [{ name: 'api', match: { path: '/api/*' } }]
  const spellings = ['/api/x%2F..%2F..', '/api/x%5C..%5C..', '/api/..;/', '/x/..;/api/y%2f..%2f..']
  test.each(spellings)(
    'A policy applies to the path %s because one of its readings matches.',
    async (path) => {
      expect(await names(api, path)).toEqual(['api'])
    },
  )

  test('A path with several readings costs as much as the most expensive reading.', async () => {
    const cost = [{ path: '/api/*', cost: 7 }]
    const describeRequest = createMatcher({ policies: [{ name: 'a', ...base, cost }] })
    expect((await describeRequest('/api/..;/')).policies).toMatchObject([{ cost: 7 }])
  })

  test('A path with several readings is denied if one reading is denied, and allowed only if all readings are allowed.', async () => {
    const deny = { path: '/api/*', header: { 'x-a': 'deny' } }
    const allow = [{ path: '/health' }, { path: '/static/*' }]
    const describeRequest = createMatcher({ policies: [{ name: 'a', ...base }], allow, deny })
    const denied = await describeRequest('/api/..;/', { headers: { 'x-a': 'deny' } })
    expect(denied).toMatchObject({ denied: { by: 'deny[0]' } })
    for (const path of ['/api/..;/health', '/api%2F..%2Fhealth', '/static/..%2fapi']) {
      expect((await describeRequest(path)).policies).toMatchObject([{ cost: 1 }])
    }
    for (const path of ['/health;x', '/health%3bx', '/health%0a', '/static;x/a']) {
      expect((await describeRequest(path)).policies).toMatchObject([{ cost: 1 }])
    }
    for (const path of ['/health//', '/%68ealth', '/static/a%2fb', '/static/;x/a']) {
      expect((await describeRequest(path)).unmet).toMatchObject([{ unmet: 'allow' }])
    }
  })

  test('A path below a program is a path of the program, and what follows is a path of its router.', async () => {
    const policies = [
      { name: 'form', ...base, match: { path: '/wp-login.php' } },
      { name: 'login', ...base, match: { path: '/login' } },
      { name: 'rest', ...base },
    ]
    const allow = { path: '/wp-login.php/*', policies: 'rest' }
    const match = createMatcher({ policies, allow, deny: { path: '/admin/*' } })
    const applied = async (path: string) =>
      (await match(path)).policies.map(({ terms }) => terms.name)
    expect(await applied('/wp-login.php/x')).toEqual(['form', 'rest'])
    expect(await applied('/wp-login.php%2Fx')).toEqual(['form', 'rest'])
    expect(await applied('/index.php/login')).toEqual(['login', 'rest'])
    expect(await applied('/x/index.php/login')).toEqual(['login', 'rest'])
    expect(await match('/index.php/admin/x')).toMatchObject({ denied: { by: 'deny[0]' } })
    expect(await applied('/v1.2/login')).toEqual(['rest'])
  })

  test('A path with more than sixteen readings is unreadable: each policy with a path applies, in one shared quota, and no entry of allow.', async () => {
    const path = '/users/8;y;y%3b/%2f%2f%2f..%5C%2f%2f/%2e;y//a%20'
    expect(readings(path).length).toBeGreaterThan(16)
    const policies = [
      { name: 'a', ...base, match: { path: '/users/:id/*' }, key: 'path:id' as const },
      { name: 'b', ...base, match: { path: '/other' }, key: 'global' as const },
    ]
    const describeRequest = createMatcher({ policies, allow: { path: '/*' } })
    expect((await describeRequest(path)).policies).toMatchObject([
      { partitionKey: [['path:id', undefined, 'unreadable']] },
      { partitionKey: [['global', 'global']] },
    ])
  })

  test('A router that reads the path as it was sent cannot be reached around a policy.', async () => {
    const policies = [
      { name: 'by-id', ...base, match: { path: '/users/:id' }, key: 'path:id' as const },
    ]
    const config = parseConfig({ policies, deny: { path: '/admin/*' } }, defaultFields)
    const match = matcherOf(config)
    const matched = (path: string) => {
      // Workers keep the URL as it was sent. The constructor of Request would resolve it.
      const sent = { url: `https://a.example${path}`, method: 'GET', headers: new Headers() }
      const runtime = { env: {}, context: undefined, waitUntil: () => {} }
      return match(new RequestView(sent as Request, runtime, config, () => undefined))
    }
    for (const path of ['/admin/%2e%2e/x', '/admin/../x', '/admin\\..\\x', '/x/%2e%2e/admin/y']) {
      expect(await matched(path), path).toMatchObject({ denied: { by: 'deny[0]' } })
    }
    expect((await matched('/users/8\\x')).policies).toMatchObject([
      { partitionKey: [['path:id', '8%5cx']] },
    ])
  })

  describe('the quotas of the readings of a path', () => {
    const key = 'path:id' as const
    const matcherOf = (policy: Partial<PolicyOptions>) =>
      createMatcher({
        policies: [{ name: 'a', ...base, match: { path: '/users/:id/*' }, ...policy }],
      })
    const byId = matcherOf({ key })
    const quotas = async (
      policy: Partial<PolicyOptions>,
      path: string,
      init: RequestInit = {},
      describeRequest = matcherOf(policy),
    ) => {
      const { policies, ...rest } = await describeRequest(path, init)
      return {
        ...rest,
        policies,
        keys: policies.map((one) => one.partitionKey.map(([, value]) => value)),
      }
    }

    test.each([
      ['/users/8/search/..%2F..%2Fa1%2Fx', ['a1', '8']],
      ['/users/8/search/..;/..;/b1/x', ['b1', '8']],
      ['/users/8/search/..%5C..%5Cc1/x', ['c1', '8']],
      ['/users/8/..;/d1%2F..%2Fe1', ['d1%2f..%2fe1', 'e1', '8']],
      ['/users/8/x%2Fy', ['8']],
      ['/users/8/search/x', ['8']],
      ['/users/8;v=1/x%2F..', ['8', '8;v=1']],
      ['/users/;9/x', [';9', 'x']],
      ['/users/8%0a', ['8']],
    ])('A request for the path %s charges the quotas %j.', async (path, ids) => {
      const { keys } = await quotas({ key }, path)
      expect(keys.flat().toSorted()).toEqual(ids.toSorted())
    })

    test('A request whose key is the path charges the quota of each reading.', async () => {
      const { keys } = await quotas({ key: ['path', 'method'], match: {} }, '/a/..%2Fb')
      expect(keys).toEqual([
        ['/b', 'GET'],
        ['/a/..%2fb', 'GET'],
      ])
    })

    test('A quota that all readings share is charged once.', async () => {
      const path = '/users/8/search/..%2F..%2Fa1%2Fx'
      const headers = { 'cf-connecting-ip': '203.0.113.7' }
      const { keys } = await quotas({ key: 'ip' }, path, { headers })
      expect(keys).toEqual([['203.0.113.7']])
    })

    test('A quota is charged at the highest cost of the readings, with the smallest plan.', async () => {
      const plans = { limits: { '8': 50, a1: 20 }, plan: 'path:id', key: 'global' } as const
      const cost = [{ path: '/users/8/*', cost: 3 }]
      const path = '/users/8/search/..%2F..%2Fa1%2Fx'
      for (const [limits, limit] of [
        [{ '8': 50, a1: 20 }, 20],
        [{ '8': 10, a1: 20 }, 10],
        [{ a1: 20 }, 5],
      ] as const) {
        const { policies } = await quotas({ ...plans, limits, cost }, path)
        expect(policies).toMatchObject([{ terms: { limit }, cost: 3 }])
      }
      const { policies } = await quotas({ ...plans, key }, path)
      expect(policies).toMatchObject([
        { terms: { limit: 20 }, partitionKey: [['path:id', 'a1']] },
        { terms: { limit: 50 }, partitionKey: [['path:id', '8']] },
      ])
    })

    test("Each reading with a key is charged, and 'refuse' denies the request if one reading has no key.", async () => {
      const match = { path: ['/users/:id', '/users/:id/*', '/all'] }
      const path = '/users/8/..%2F..%2Fall' // /all, or below /users/8
      const shared = await quotas({ key, match }, path)
      expect(shared.keys).toEqual([[undefined], ['8']])
      const skipped = await quotas({ key, match, onMissingKey: 'skip' }, path)
      expect(skipped.keys).toEqual([['8']])
      const refused = await quotas({ key, match, onMissingKey: 'refuse' }, path)
      expect(refused.denied).toEqual({ by: 'a', missing: 'path:id' })
      expect(refused.keys).toEqual([])
      const other = await quotas({ key, match, onMissingKey: { key: 'method' } }, path)
      expect(other.keys).toEqual([['GET'], ['8']])
      const none = await quotas({ key, match, onMissingKey: 'skip' }, '/x;/..;/all')
      expect(none.unmet).toMatchObject([{ unmet: 'key', missing: 'path:id' }])
    })

    test('Every id that an origin may read in a random path is charged.', async () => {
      const segment = fc.constantFrom(
        'users',
        '8',
        'a',
        'search',
        '..',
        '.',
        '..;',
        '..;x',
        '8;y',
        '',
      )
      const separator = fc.constantFrom('/', '/', '%2F', '%2f', '%5C', '\\')
      const paths = fc
        .array(fc.tuple(separator, segment), { maxLength: 7 })
        .map((parts) => `/users/8${parts.map((part) => part.join('')).join('')}`)
      const pattern = pathMatcher('/users/:id/*')
      await fc.assert(
        fc.asyncProperty(paths, async (path) => {
          const { pathname } = new URL(path, 'https://www.example.com')
          fc.pre(readings(pathname).length <= 16)
          const { keys } = await quotas({}, path, {}, byId)
          const ids = readings(pathname.toLowerCase()).flatMap((one) => pattern(one)?.id ?? [])
          const named = [...new Set(ids.map((id) => id.toLowerCase()))]
          // A path with more readings is unreadable, and shares one quota with all such paths.
          if (readings(pathname.toLowerCase()).length > 16) {
            expect(keys.flat()).toEqual([undefined])
            return
          }
          expect(keys.flat().toSorted()).toEqual(named.toSorted())
          // An origin that routes raw segments, such as Express, uses the third segment as the id.
          const [, users, id, below] = pathname.split('/')
          if (users === 'users' && id && below !== undefined && !/[;%]/.test(id)) {
            expect(keys.flat()).toContain(id)
          }
        }),
        { numRuns: 300 },
      )
    })
  })

  test('An encoded slash does not split a path parameter.', async () => {
    const policy = { name: 'a', key: 'path:id', match: { path: '/files/:id' } } as const
    expect(await met([policy], '/files/a%2Fb')).toEqual({ a: [['path:id', 'a%2fb']] })
  })
})
