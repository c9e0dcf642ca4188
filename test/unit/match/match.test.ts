import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ConfigOptions, PolicyOptions } from '../../../src/config/options.ts'
import { isMatch } from '../../../src/match/match.ts'
import { pathMatcher, readings } from '../../../src/request/path.ts'
import { type Circumstances, describer } from '../../support/describe.ts'

const base = { limit: 5, window: '10s' } as const
type Terms = Omit<PolicyOptions, 'limit' | 'window'>

/** What the policies make of a request: name → partition key. */
async function met(
  policies: Terms[],
  url: string,
  init: RequestInit = {},
  circumstances: Circumstances = {},
  config: Partial<ConfigOptions> = {},
) {
  const describeRequest = describer({
    ...config,
    policies: policies.map((policy) => ({ ...base, ...policy })),
  })
  const { policies: described } = await describeRequest(url, init, circumstances)
  return Object.fromEntries(
    described.filter(isMatch).map(({ policy, partitionKey }) => [policy.name, partitionKey]),
  )
}
const names = async (...args: Parameters<typeof met>) => Object.keys(await met(...args))

describe('a policy meets', () => {
  const policies: Terms[] = [
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
  ])('%s %s', async (url, method, expected) => {
    expect(await names(policies, url, { method })).toEqual(expected)
  })
})

describe('a path that origins take for different ones', () => {
  const api = [{ name: 'api', match: { path: '/api/*' } }]
  const dodges = ['/api/x%2F..%2F..', '/api/x%5C..%5C..', '/api/..;/', '/x/..;/api/y%2f..%2f..']
  test.each(dodges)('%s meets the policy of any of them', async (path) => {
    expect(await names(api, path)).toEqual(['api'])
  })

  test('costs what the dearest of them does', async () => {
    const cost = [{ path: '/api/*', cost: 7 }]
    const describeRequest = describer({ policies: [{ name: 'a', ...base, cost }] })
    expect((await describeRequest('/api/..;/')).policies).toMatchObject([{ cost: 7 }])
  })

  test('is denied as any of them, and allowed as all', async () => {
    const deny = { path: '/api/*', header: { 'x-a': 'deny' } }
    const allow = [{ path: '/health' }, { path: '/static/*' }]
    const describeRequest = describer({ policies: [{ name: 'a', ...base }], allow, deny })
    const denied = await describeRequest('/api/..;/', { headers: { 'x-a': 'deny' } })
    expect(denied).toMatchObject({ denied: { by: 'deny[0]' } })
    for (const path of ['/api/..;/health', '/api%2F..%2Fhealth', '/static/..%2fapi']) {
      expect((await describeRequest(path)).policies).toMatchObject([{ cost: 1 }])
    }
    for (const path of ['/health//', '/%68ealth', '/static/a%2fb', '/static/;x/a']) {
      expect((await describeRequest(path)).policies).toMatchObject([{ unmet: 'allow' }])
    }
  })

  describe('charges the quota of each reading', () => {
    const key = 'path:id' as const
    const quotas = async (policy: Partial<PolicyOptions>, path: string, init: RequestInit = {}) => {
      const match = { path: '/users/:id/*' }
      const describeRequest = describer({ policies: [{ name: 'a', ...base, match, ...policy }] })
      const { policies, denied } = await describeRequest(path, init)
      const met = policies.filter(isMatch)
      return {
        denied,
        policies,
        keys: met.map((one) => one.partitionKey.map(([, value]) => value)),
      }
    }

    test.each([
      ['/users/8/search/..%2F..%2Fa1%2Fx', ['a1', '8']],
      ['/users/8/search/..;/..;/b1/x', ['b1', '8']],
      ['/users/8/search/..%5C..%5Cc1/x', ['c1', '8']],
      ['/users/8/..;/d1%2F..%2Fe1', ['d1%2f..%2fe1', 'e1', '8']],
      ['/users/8/x%2Fy', ['8']],
      ['/users/8/search/x', ['8']],
      ['/users/8;v=1/x%2F..', ['8']],
    ])('of %s: %j', async (path, ids) => {
      const { keys } = await quotas({ key }, path)
      expect(keys.flat().toSorted()).toEqual(ids.toSorted())
    })

    test('by the whole path', async () => {
      const { keys } = await quotas({ key: ['path', 'method'], match: {} }, '/a/..%2Fb')
      expect(keys).toEqual([
        ['/b', 'GET'],
        ['/a/..%2fb', 'GET'],
      ])
    })

    test('once, where all readings name the same quota', async () => {
      const path = '/users/8/search/..%2F..%2Fa1%2Fx'
      const headers = { 'cf-connecting-ip': '203.0.113.7' }
      const { keys } = await quotas({ key: 'ip' }, path, { headers })
      expect(keys).toEqual([['203.0.113.7']])
    })

    test('by the smallest plan that a reading names for it, at the highest cost', async () => {
      const plans = { limits: { '8': 50, a1: 20 }, plan: 'path:id', key: 'global' } as const
      const cost = [{ path: '/users/8/*', cost: 3 }]
      const path = '/users/8/search/..%2F..%2Fa1%2Fx'
      for (const [limits, limit] of [
        [{ '8': 50, a1: 20 }, 20],
        [{ '8': 10, a1: 20 }, 10],
        [{ a1: 20 }, 5],
      ] as const) {
        const { policies } = await quotas({ ...plans, limits, cost }, path)
        expect(policies).toMatchObject([{ policy: { limit }, cost: 3 }])
      }
      const { policies } = await quotas({ ...plans, key }, path)
      expect(policies).toMatchObject([
        { policy: { limit: 20 }, partitionKey: [['path:id', 'a1']] },
        { policy: { limit: 50 }, partitionKey: [['path:id', '8']] },
      ])
    })

    test('that has one, and refuses where one lacks its key', async () => {
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
      expect(none.policies).toMatchObject([{ unmet: 'key', missing: 'path:id' }])
    })

    test('whichever way an origin reads it', async () => {
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
          const { keys } = await quotas({ key }, path)
          const ids = readings(pathname.toLowerCase()).flatMap((one) => pattern(one)?.id ?? [])
          const named = [...new Set(ids.map((id) => id.toLowerCase()))]
          expect(keys.flat().toSorted()).toEqual(named.toSorted())
          // An origin that routes raw segments, as Express does, takes the third for the id.
          const [, users, id, below] = pathname.split('/')
          if (users === 'users' && id && below !== undefined && !/[;%]/.test(id)) {
            expect(keys.flat()).toContain(id)
          }
        }),
        { numRuns: 300 },
      )
    })
  })

  test('is a parameter whole to one that does not part it', async () => {
    const policy = { name: 'a', key: 'path:id', match: { path: '/files/:id' } } as const
    expect(await met([policy], '/files/a%2Fb')).toEqual({ a: [['path:id', 'a%2fb']] })
  })
})

describe('a policy meets by', () => {
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
  ])('%j: %s', async (match, expected) => {
    const found = await names([{ name: 'a', match: match! }], '/', { headers }, circumstances)
    expect(found).toEqual(expected ? ['a'] : [])
  })

  test('what Cloudflare does not tell, country unknown and no address, matches nothing but XX', async () => {
    expect(await names([{ name: 'a', match: { country: 'DE' } }], '/')).toEqual([])
    expect(await names([{ name: 'a', match: { country: 'XX' } }], '/')).toEqual(['a'])
    expect(await names([{ name: 'a', match: { ip: '0.0.0.0/0' } }], '/')).toEqual([])
    const spoofed = { headers: { 'cf-ipcountry': 'DE' } }
    expect(await names([{ name: 'a', match: { country: 'DE' } }], '/', spoofed)).toEqual([])
  })

  test('paths by letter case, where the configuration says so', async () => {
    const policies = [{ name: 'a', match: { path: '/Users/:id' }, key: 'path:id' as const }]
    expect(await met(policies, '/uSERS/Ann')).toEqual({ a: [['path:id', 'ann']] })
    const exact = { caseSensitivePaths: true }
    expect(await met(policies, '/uSERS/Ann', {}, {}, exact)).toEqual({})
    expect(await met(policies, '/Users/Ann', {}, {}, exact)).toEqual({ a: [['path:id', 'Ann']] })
  })
})

describe('a partition key', () => {
  const key = async (
    key: PolicyOptions['key'],
    headers: Record<string, string> = {},
    { url = '/', ...circumstances }: Circumstances & { url?: string } = {},
  ) =>
    (
      await met(
        [{ name: 'a', key: key!, match: { path: ['/*', '/users/:id'] } }],
        url,
        { headers },
        circumstances,
      )
    ).a

  test('takes the address from cf-connecting-ip only', async () => {
    const spoofed = {
      'x-forwarded-for': '6.6.6.6',
      'x-real-ip': '6.6.6.6',
      forwarded: 'for=6.6.6.6',
      'true-client-ip': '6.6.6.6',
    }
    expect(await key('ip', { ...spoofed, 'cf-connecting-ip': '203.0.113.7' })).toEqual([
      ['ip', '203.0.113.7'],
    ])
    expect(await key('ip', spoofed)).toEqual([['ip', undefined]])
  })

  test('takes IPv6 by /64, or by the prefix it is told', async () => {
    const headers = { 'cf-connecting-ip': '2001:db8:1:2:3::4' }
    expect(await key('ip', headers)).toEqual([['ip', '2001:db8:1:2::/64']])
    expect(await key({ ip: { v6: 48 } }, headers)).toEqual([['ip', '2001:db8:1::/48']])
  })

  const cf = { country: 'de', asn: 64_500, colo: 'FRA' }
  test.each<[PolicyOptions['key'], string, Record<string, string>, string | undefined]>([
    ['header:X-A', '/', { 'x-a': ' b ' }, 'b'],
    ['header:X-A', '/', { 'x-a': '' }, undefined],
    ['header:X-A', '/', {}, undefined],
    ['cookie:sid', '/', { cookie: 'a=1; sid=%61bc; b=2' }, 'abc'],
    ['cookie:sid', '/', { cookie: 'sid=a; sid=b' }, undefined],
    ['cookie:sid', '/', { cookie: 'sid=a; sid=a' }, 'a'],
    ['cookie:__proto__', '/', { cookie: 'a=b' }, undefined],
    ['query:q', '/?q=a%20b', {}, 'a b'],
    ['query:q', '/?q=a&q=b', {}, undefined],
    ['query:q', '/?q=', {}, undefined],
    ['path', '/A//b/', {}, '/a/b'],
    ['path:id', '/users/7', {}, '7'],
    ['path:id', '/users/%37', {}, '7'],
    ['path:id', '/other', {}, undefined],
    ['method', '/', {}, 'GET'],
    ['host', 'https://API.example.com.:8443/', {}, 'api.example.com'],
    ['country', '/', {}, 'DE'],
    ['asn', '/', {}, '64500'],
    ['colo', '/', {}, 'FRA'],
    ['global', '/', {}, 'global'],
    [() => 7, '/', {}, '7'],
    [async () => 'later', '/', {}, 'later'],
    [() => null, '/', {}, undefined],
  ])('%s of %s %j is %s', async (source, url, headers, value) => {
    const [, found] = (await key(source, headers, { url, cf }))![0]!
    expect(found).toBe(value)
  })

  test('has a part for each source', async () => {
    const headers = { 'x-a': 'b', 'cf-connecting-ip': 'nonsense' }
    expect(await key(['ip', 'header:X-A', 'method'], headers)).toEqual([
      ['ip', undefined],
      ['header:x-a', 'b'],
      ['method', 'GET'],
    ])
  })

  test('a key function is given the context; one that throws counts as missing, and is told of', async () => {
    const lines: string[] = []
    const describeRequest = describer(
      {
        policies: [
          { name: 'a', ...base, key: (context) => (context as { user: string }).user },
          {
            name: 'b',
            ...base,
            key: () => {
              throw new TypeError('no user')
            },
            onMissingKey: 'skip',
          },
        ],
      },
      lines,
    )
    const { policies } = await describeRequest('/', {}, { context: { user: 'ann' } })
    expect(policies).toMatchObject([
      { partitionKey: [['function', 'ann']] },
      { unmet: 'key', missing: 'function' },
    ])
    expect(lines).toEqual(['key-error TypeError'])
  })

  test.each([[{ id: 7 }], [Object.create(null)], [[7]], [() => 7]])(
    'of %j is none: everybody would have the same',
    async (value) => {
      const lines: string[] = []
      const key = (() => value) as () => string
      const describeRequest = describer({ policies: [{ name: 'a', ...base, key }] }, lines)
      const { policies } = await describeRequest('/')
      expect(policies).toMatchObject([{ partitionKey: [['function', undefined]] }])
      expect(lines).toEqual(['key-error TypeError'])
    },
  )
})

describe('a missing part', () => {
  const described = async (policy: Partial<PolicyOptions>, headers = {}) =>
    describer({ policies: [{ name: 'a', ...base, key: 'header:x-a', ...policy }] })('/', {
      headers,
    })

  test('shares, skips, refuses, or falls back, as declared', async () => {
    const shared = { policies: [{ partitionKey: [['header:x-a', undefined]] }] }
    expect(await described({})).toMatchObject(shared)
    expect(await described({ onMissingKey: 'share' })).toMatchObject(shared)
    const skipped = { policies: [{ unmet: 'key', missing: 'header:x-a' }] }
    expect(await described({ onMissingKey: 'skip' })).toMatchObject(skipped)
    expect(await described({ onMissingKey: 'refuse' })).toMatchObject({
      ...skipped,
      denied: { by: 'a', missing: 'header:x-a' },
    })
    expect(
      await described({ onMissingKey: { key: 'ip' } }, { 'cf-connecting-ip': '203.0.113.7' }),
    ).toMatchObject({ policies: [{ partitionKey: [['ip', '203.0.113.7']] }] })
  })

  describe.each([
    // part of the key, what is sent, label, and what of it
    ['cookie:a', { cookie: 'a=1; a=2' }, 'unreadable'],
    ['api-key', { 'x-api-key': 'one, two' }, 'unreadable'],
    ['api-key', { 'x-api-key': 'unknown' }, 'unverified'],
    ['jwt:sub', { authorization: 'Bearer a.b.c, Bearer d.e.f' }, 'unreadable'],
    ['jwt:sub', { authorization: 'Bearer a.b.c' }, 'unverified'],
  ] as const)('%s of %j is %s, not missing:', (key, headers, fault) => {
    const of = async (onMissingKey: PolicyOptions['onMissingKey'], mode?: 'shadow') =>
      describer({
        jwt: { secret: 'JWT' },
        apiKeys: { known: 'KEYS' },
        policies: [{ name: 'a', ...base, key, onMissingKey: onMissingKey!, ...(mode && { mode }) }],
      })(
        '/',
        { headers: { ...headers, 'cf-connecting-ip': '203.0.113.7' } },
        { env: { JWT: 'x'.repeat(32), KEYS: '0'.repeat(64) } },
      )

    test.each(['share', 'skip'] as const)(
      "with '%s' it counts in the shared quota",
      async (does) => {
        expect(await of(does)).toEqual({
          policies: [expect.objectContaining({ partitionKey: [[key, undefined, fault]] })],
        })
      },
    )

    test("with 'refuse' it is denied", async () => {
      expect(await of('refuse')).toEqual({
        denied: { by: 'a', [fault]: key },
        policies: [expect.objectContaining({ unmet: 'key', [fault]: key })],
      })
      expect((await of('refuse', 'shadow')).denied).toBe(undefined)
    })

    test('with another key it counts by that', async () => {
      expect(await of({ key: 'ip' })).toMatchObject({
        policies: [{ partitionKey: [['ip', '203.0.113.7']] }],
      })
    })
  })

  test("beside an unreadable one is counted, with 'skip' too", async () => {
    const key = ['header:x-a', 'cookie:a'] as const
    const cookie = 'a=1; a=2'
    expect(await described({ key: [...key], onMissingKey: 'skip' }, { cookie })).toMatchObject({
      policies: [
        {
          partitionKey: [
            ['header:x-a', undefined],
            ['cookie:a', undefined, 'unreadable'],
          ],
        },
      ],
    })
  })

  test('falls back to a function whose 7 is not the 7 of the first', async () => {
    const key = (context: unknown) => (context as { user?: number }).user
    const other = (context: unknown) => (context as { tenant: number }).tenant
    const describeRequest = describer({
      policies: [{ name: 'a', ...base, key, onMissingKey: { key: other } }],
    })
    const subject = async (context: unknown) => {
      const { policies } = await describeRequest('/', {}, { context })
      return policies.filter(isMatch)[0]!.partitionKey
    }
    expect(await subject({ tenant: 7 })).not.toEqual(await subject({ user: 7 }))
  })

  test('of a policy in shadow refuses nobody', async () => {
    const { denied } = await described({ onMissingKey: 'refuse', mode: 'shadow' })
    expect(denied).toBeUndefined()
  })

  test('where it is there, nothing of that applies', async () => {
    for (const onMissingKey of ['skip', 'refuse', { key: 'ip' }] as const) {
      expect(await described({ onMissingKey }, { 'x-a': 'b' })).toMatchObject({
        policies: [{ partitionKey: [['header:x-a', 'b']] }],
      })
    }
  })
})

describe('lists', () => {
  const describeRequest = describer({
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

  test('allow skips every policy, or those it names', async () => {
    expect(await of('10.1.2.3')).toMatchObject({
      policies: [
        { unmet: 'allow', entry: 'allow[0]' },
        { unmet: 'allow', entry: 'allow[0]' },
      ],
    })
    const partner = { 'x-partner': 'a-long-secret-of-a-partner' }
    expect(await of('203.0.113.7', '/', partner)).toMatchObject({
      policies: [{ cost: 1 }, { unmet: 'allow', entry: 'partners' }],
    })
  })

  test('deny refuses whoever it names, allowed or not', async () => {
    expect(await of('10.6.6.6')).toEqual({ denied: { by: 'deny[0]' }, policies: [] })
    expect(await of('10.6.6.6', '/appeal')).not.toHaveProperty('denied')
  })
})

describe('a cost', () => {
  const cost = async (
    cost: PolicyOptions['cost'],
    url: string,
    init: RequestInit = {},
    env = {},
  ) => {
    const { policies } = await describer({ policies: [{ name: 'a', ...base, cost: cost! }] })(
      url,
      init,
      { env },
    )
    return policies.filter(isMatch)[0]!.cost
  }

  test('is a number, or that of the first rule that matches', async () => {
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

  test('of a header is the word of the decision API alone, and of no nonsense', async () => {
    const terms = { header: 'Sluice-Cost', otherwise: 2 }
    const env = { SLUICE_PROXY_TOKEN: 'a-token-of-the-api' }
    const said = (value: string, token?: string) => ({
      headers: { 'sluice-cost': value, ...(token && { 'sluice-token': token }) },
    })
    expect(await cost(terms, '/', said('5', 'a-token-of-the-api'), env)).toBe(5)
    expect(await cost(terms, '/', said('0', 'a-token-of-the-api'), env)).toBe(0)
    expect(await cost(terms, '/', said('5'), env)).toBe(2)
    expect(await cost(terms, '/', said('5', 'another'), env)).toBe(2)
    expect(await cost(terms, '/', said('5', ''), {})).toBe(2)
    for (const nonsense of ['-1', '1.5', '1e3', 'x', '', '9'.repeat(16)]) {
      expect(await cost(terms, '/', said(nonsense, 'a-token-of-the-api'), env)).toBe(2)
    }
  })
})
