import { describe, expect, test } from 'vitest'
import { compile } from '../src/descriptor.ts'
import { type PolicyOptions, parseConfig } from '../src/policy.ts'

const base = { limit: 5, window: '10s' } as const

/** What the policies make of a request: name → partition key. */
function met(
  policies: Omit<PolicyOptions, 'limit' | 'window'>[],
  url: string,
  init: RequestInit = {},
) {
  const describeRequest = compile(
    parseConfig({ policies: policies.map((policy) => ({ ...base, ...policy })) }).policies,
  )
  const descriptors = describeRequest(new Request(new URL(url, 'https://www.example.com'), init))
  return Object.fromEntries(
    descriptors.map(({ policy, partitionKey }) => [policy.name, partitionKey]),
  )
}
const names = (...args: Parameters<typeof met>) => Object.keys(met(...args))

describe('a policy meets', () => {
  const policies: Omit<PolicyOptions, 'limit' | 'window'>[] = [
    { name: 'all' },
    { name: 'get', match: { path: '/get', method: 'get' } },
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
  ])('%s %s', (url, method, expected) => {
    expect(names(policies, url, { method })).toEqual(expected)
  })
})

describe('a partition key', () => {
  const key = (key: PolicyOptions['key'], headers: Record<string, string>) =>
    met([{ name: 'a', key: key! }], '/', { headers }).a

  test('takes the address from cf-connecting-ip only', () => {
    const spoofed = {
      'x-forwarded-for': '6.6.6.6',
      'x-real-ip': '6.6.6.6',
      forwarded: 'for=6.6.6.6',
      'true-client-ip': '6.6.6.6',
    }
    expect(key('ip', { ...spoofed, 'cf-connecting-ip': '203.0.113.7' })).toEqual([
      ['ip', '203.0.113.7'],
    ])
    expect(key('ip', spoofed)).toEqual([['ip', undefined]])
  })

  test('takes IPv6 by /64, or by the prefix it is told', () => {
    const headers = { 'cf-connecting-ip': '2001:db8:1:2:3::4' }
    expect(key('ip', headers)).toEqual([['ip', '2001:db8:1:2::/64']])
    expect(key({ ip: { v6: 48 } }, headers)).toEqual([['ip', '2001:db8:1::/48']])
  })

  test('has a part for each source, and tells a missing one from an empty one', () => {
    expect(
      key(['ip', 'header:X-A', 'header:x-b'], { 'x-a': '', 'cf-connecting-ip': 'nonsense' }),
    ).toEqual([
      ['ip', undefined],
      ['header:x-a', ''],
      ['header:x-b', undefined],
    ])
  })
})
