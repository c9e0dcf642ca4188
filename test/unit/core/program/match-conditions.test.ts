import { describe, expect, test } from 'vitest'
import type { PolicyOptions } from '../../../../src/core/config/options.ts'
import { createMatcher } from '../../../support/create-matcher.ts'

import { base, met, names, type Terms } from '../../../support/match.ts'

describe('the conditions host, path and method', () => {
  const policies: Terms[] = [
    { name: 'all' },
    { name: 'get', match: { path: '/get', method: 'get' } },
    { name: 'patch', match: { path: '/patch', method: 'patch' } },
    { name: 'login', match: { path: '/login', method: 'post' } },
    { name: 'api', match: { path: ['/api/*', '/v1/:thing'] } },
    { name: 'shop', match: { host: ['shop.example.com', '*.shop.example.com'] } },
  ]
  test.each([
    ['/', 'GET', ['all']],
    ['/login', 'POST', ['all', 'login']],
    ['/login', 'GET', ['all']],
    ['//x/..//%6Cogin/?next=/', 'POST', ['all', 'login']],
    ['/Login', 'POST', ['all', 'login']],
    ['/api', 'GET', ['all', 'api']],
    ['/api/a/b', 'GET', ['all', 'api']],
    ['/v1/things', 'GET', ['all', 'api']],
    ['/v1/things/7', 'GET', ['all']],
    ['/get', 'HEAD', ['all', 'get']],
    ['/get', 'POST', ['all']],
    ['https://shop.example.com./', 'GET', ['all', 'shop']],
    ['https://shop.example.com/', 'GET', ['all', 'shop']],
    ['https://SHOP.example.com:8443/', 'GET', ['all', 'shop']],
    ['https://eu.shop.example.com/', 'GET', ['all', 'shop']],
    ['https://notshop.example.com/', 'GET', ['all']],
    ['/patch', 'patch', ['all', 'patch']], // Django reads a PATCH
  ])('The policies that apply to the request %s %s are %j.', async (url, method, expected) => {
    expect(await names(policies, url, { method })).toEqual(expected)
  })
})

describe('the conditions header, country, ip and not', () => {
  const headers = {
    'cf-connecting-ip': '203.0.113.7',
    'x-plan': 'Free',
    'user-agent': 'curl/8.5',
  }
  const circumstances = { cf: { country: 'DE', asn: 64_500, colo: 'FRA' } }
  test.each<[Terms['match'], boolean]>([
    [{ header: { 'X-Plan': true } }, true],
    [{ header: { 'X-Other': true } }, false],
    [{ header: { 'x-plan': 'free' } }, true],
    [{ header: { 'x-plan': ['pro', 'fr*'] } }, true],
    [{ header: { 'x-plan': 'ree' } }, false],
    [{ header: { 'user-agent': '*url/*' } }, true],
    [{ header: { 'user-agent': '*/8.5' } }, true],
    [{ header: { 'user-agent': 'curl/*', 'x-plan': 'pro' } }, false],
    [{ country: ['fr', 'de'] }, true],
    [{ country: 'FR' }, false],
    [{ ip: '203.0.113.0/24' }, true],
    [{ ip: ['10.0.0.0/8', '203.0.113.7'] }, true],
    [{ ip: '203.0.113.8/29' }, false],
    [{ not: { country: 'DE' } }, false],
    [{ not: { country: 'DE', method: 'POST' } }, true],
    [{ not: [{ country: 'FR' }, { header: { 'x-plan': true } }] }, false],
    [{ country: 'DE', not: { path: '/health', not: { method: 'POST' } } }, true],
  ])('For the request of this test, the condition %j evaluates to %s.', async (match, expected) => {
    const found = await names([{ name: 'a', match: match! }], '/', { headers }, circumstances)
    expect(found).toEqual(expected ? ['a'] : [])
  })

  test('A request without a country and an address matches only the country XX, and no network.', async () => {
    expect(await names([{ name: 'a', match: { country: 'DE' } }], '/')).toEqual([])
    expect(await names([{ name: 'a', match: { country: 'XX' } }], '/')).toEqual(['a'])
    expect(await names([{ name: 'a', match: { ip: '0.0.0.0/0' } }], '/')).toEqual([])
    const spoofed = { headers: { 'cf-ipcountry': 'DE' } }
    expect(await names([{ name: 'a', match: { country: 'DE' } }], '/', spoofed)).toEqual([])
  })

  test('With caseSensitivePaths, paths that differ by letter case do not match.', async () => {
    const policies = [{ name: 'a', match: { path: '/Users/:id' }, key: 'path:id' as const }]
    expect(await met(policies, '/uSERS/Ann')).toEqual({ a: [['path:id', 'ann']] })
    const exact = { caseSensitivePaths: true }
    expect(await met(policies, '/uSERS/Ann', {}, {}, exact)).toEqual({})
    expect(await met(policies, '/Users/Ann', {}, {}, exact)).toEqual({ a: [['path:id', 'Ann']] })
  })
})

describe('allow and deny lists', () => {
  const describeRequest = createMatcher({
    policies: [
      { name: 'a', ...base },
      { name: 'b', ...base },
    ],
    allow: [
      { ip: '10.0.0.0/8' },
      { name: 'partners', header: { 'x-partner': 'a-long-secret-of-a-partner' }, policies: 'b' },
    ],
    deny: { ip: '10.6.6.0/24', not: { path: '/appeal' } },
  })
  const of = (ip: string, path = '/', headers = {}) =>
    describeRequest(path, { headers: { 'cf-connecting-ip': ip, ...headers } })

  test('An allow entry skips every policy, or the policies that it names.', async () => {
    expect(await of('10.1.2.3')).toMatchObject({
      policies: [],
      unmet: [
        { unmet: 'allow', entry: 'allow[0]' },
        { unmet: 'allow', entry: 'allow[0]' },
      ],
    })
    const partner = { 'x-partner': 'a-long-secret-of-a-partner' }
    expect(await of('203.0.113.7', '/', partner)).toMatchObject({
      policies: [{ cost: 1 }],
      unmet: [{ unmet: 'allow', entry: 'partners' }],
    })
  })

  test('A deny entry refuses the requests that it matches, even if an allow entry matches too.', async () => {
    expect(await of('10.6.6.6')).toEqual({ denied: { by: 'deny[0]' }, policies: [] })
    expect(await of('10.6.6.6', '/appeal')).not.toHaveProperty('denied')
  })
})

describe('the cost of a request', () => {
  const cost = async (
    cost: PolicyOptions['cost'],
    url: string,
    init: RequestInit = {},
    env = {},
  ) => {
    const { policies } = await createMatcher({ policies: [{ name: 'a', ...base, cost: cost! }] })(
      url,
      init,
      { env },
    )
    return policies[0]!.cost
  }

  test('The cost is a fixed number, or the cost of the first rule that matches.', async () => {
    const rules = [
      { path: '/export', cost: 4 },
      { method: 'POST', cost: 2 },
    ]
    expect(await cost(3, '/')).toBe(3)
    expect(await cost(rules, '/export', { method: 'POST' })).toBe(4)
    expect(await cost(rules, '/', { method: 'POST' })).toBe(2)
    expect(await cost(rules, '/')).toBe(1)
    expect(await cost({ rules, otherwise: 0 }, '/')).toBe(0)
  })

  test('A cost in a header counts only with the token of a trusted proxy, and only if it is a whole number.', async () => {
    const terms = { header: 'Sluice-Cost', otherwise: 2 }
    const env = { SLUICE_PROXY_TOKEN: 'a-token-of-the-api' }
    const costing = (value: string, token?: string) => ({
      headers: { 'sluice-cost': value, ...(token && { 'sluice-token': token }) },
    })
    expect(await cost(terms, '/', costing('5', 'a-token-of-the-api'), env)).toBe(5)
    expect(await cost(terms, '/', costing('0', 'a-token-of-the-api'), env)).toBe(0)
    expect(await cost(terms, '/', costing('5'), env)).toBe(2)
    expect(await cost(terms, '/', costing('5', 'another'), env)).toBe(2)
    expect(await cost(terms, '/', costing('5', ''), {})).toBe(2)
    for (const nonsense of ['-1', '1.5', '1e3', 'x', '', '9'.repeat(16)]) {
      expect(await cost(terms, '/', costing(nonsense, 'a-token-of-the-api'), env)).toBe(2)
    }
  })
})
