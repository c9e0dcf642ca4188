import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { PolicyOptions } from '../../../../src/core/config/options.ts'
import { jwt } from '../../../../src/features/jwt/index.ts'
import { type Circumstances, createMatcher } from '../../../support/create-matcher.ts'
import { base, met } from '../../../support/match.ts'

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

  test('A client that repeats a header, a cookie or a parameter gets no quota of its own.', async () => {
    const name = fc.constantFrom('x-user', 'authorization', 'x-forwarded-for', 'forwarded')
    const other = fc.stringMatching(/^[a-z0-9]{0,5}$/)
    /** The key, the parameter of the query and the field with a value. */
    const ways = {
      header: (value: string, name: string) => [`header:${name}`, '', name, value],
      cookie: (value: string, name: string) => [`cookie:${name}`, '', 'cookie', `${name}=${value}`],
      'another cookie': (value: string) => [
        'cookie:sid',
        '',
        'cookie',
        value === 'ann' ? 'sid=ann' : `a=${value}`,
      ],
      query: (value: string, name: string) => [`query:${name}`, `${name}=${value}`, 'x-none', ''],
    }
    const lines = fc.tuple(fc.array(other, { maxLength: 2 }), fc.array(other, { maxLength: 2 }))
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...Object.values(ways)),
        name,
        lines,
        async (way, name, [before, after]) => {
          const sent = [...before, 'ann', ...after].map((value) => way(value, name))
          // As Workers join the lines of a field, also those of cookies.
          const headers: Record<string, string> = {}
          for (const [, , field, value] of sent) {
            headers[field!] = field! in headers ? `${headers[field!]}, ${value}` : value!
          }
          const url = `/?${sent.map(([, parameter]) => parameter).join('&')}`
          const found = (await key(sent[0]![0] as 'path', headers, { url }))!
          expect(['ann', undefined]).toContain(found[0]![1])
        },
      ),
      { numRuns: 300 },
    )
  })

  test('The key ip reads the address only from cf-connecting-ip.', async () => {
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

  test('The key ip counts IPv6 addresses by /64, or by the configured prefix.', async () => {
    const headers = { 'cf-connecting-ip': '2001:db8:1:2:3::4' }
    expect(await key('ip', headers)).toEqual([['ip', '2001:db8:1:2::/64']])
    expect(await key({ ip: { v6: 48 } }, headers)).toEqual([['ip', '2001:db8:1::/48']])
  })

  const cf = { country: 'de', asn: 64_500, colo: 'FRA' }
  test.each<[PolicyOptions['key'], string, Record<string, string>, string | undefined]>([
    ['header:X-A', '/', { 'x-a': ' b ' }, 'b'],
    ['header:X-A', '/', { 'x-a': 'B' }, 'b'],
    // The bytes of UTF-8, as the Fetch API reads them.
    ['header:X-A', '/', { 'x-a': '\xef\xbc\xa1\xc3\xa9\xc2\xa0' + 'b' }, 'ae b'],
    ['header:X-A', '/', { 'x-a': '\xe9b' }, 'eb'],
    ['cookie:sid', '/', { cookie: 'sid=a\xc3\xa9b' }, 'aeb'],
    ['cookie:sid', '/', { cookie: 'sid=a%C3%A9b' }, 'aeb'],
    ['header:X-A', '/', { 'x-a': 'b', x_a: 'c' }, undefined],
    ['header:X-A', '/', { 'x-a': 'b', 'x.a': 'c' }, undefined],
    ['header:X-A', '/', { 'x!a': 'c' }, undefined],
    ['header:X_A', '/', { x_a: 'b', 'x-a': 'c' }, undefined],
    ['header:X-A', '/', { 'x-a': '' }, undefined],
    ['header:X-A', '/', {}, undefined],
    ['cookie:sid', '/', { cookie: 'a=1; sid=%61bc; b=2' }, 'abc'],
    ['cookie:sid', '/', { cookie: 'sid=a; sid=b' }, undefined],
    ['cookie:sid', '/', { cookie: 'sid=a; sid=a' }, 'a'],
    ['cookie:__proto__', '/', { cookie: 'a=b' }, undefined],
    ['query:q', '/?q=a%20b', {}, 'a b'],
    ['query:q', '/?q=a&q=b', {}, undefined],
    ['query:q', '/?q=%20', {}, ' '],
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
    [() => '', '/', {}, undefined],
  ])(
    'The key %s of the request %s with the headers %j has the value %s.',
    async (source, url, headers, value) => {
      const [, found] = (await key(source, headers, { url, cf }))![0]!
      expect(found).toBe(value)
    },
  )

  test('A partition key has a part for each source.', async () => {
    const headers = { 'x-a': 'b', 'cf-connecting-ip': 'nonsense' }
    expect(await key(['ip', 'header:X-A', 'method'], headers)).toEqual([
      ['ip', undefined],
      ['header:x-a', 'b'],
      ['method', 'GET'],
    ])
  })

  test('A key function receives the context. If it throws, its part is missing and an event is logged.', async () => {
    const lines: string[] = []
    const describeRequest = createMatcher(
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
    expect(await describeRequest('/', {}, { context: { user: 'ann' } })).toMatchObject({
      policies: [{ partitionKey: [['function', 'ann']] }],
      unmet: [{ unmet: 'key', missing: 'function' }],
    })
    expect(lines).toEqual(['key-error TypeError'])
  })

  test.each([[{ id: 7 }], [Object.create(null)], [[7]], [() => 7]])(
    'A key function that returns %j counts as missing, because every client would share that key.',
    async (value) => {
      const lines: string[] = []
      const key = (() => value) as () => string
      const describeRequest = createMatcher({ policies: [{ name: 'a', ...base, key }] }, lines)
      const { policies } = await describeRequest('/')
      expect(policies).toMatchObject([{ partitionKey: [['function', undefined]] }])
      expect(lines).toEqual(['key-error TypeError'])
    },
  )
})

describe('a missing part of a key', () => {
  const described = async (policy: Partial<PolicyOptions>, headers = {}) =>
    createMatcher({ policies: [{ name: 'a', ...base, key: 'header:x-a', ...policy }] })('/', {
      headers,
    })

  test('The option onMissingKey shares, skips, refuses, or falls back to another key.', async () => {
    const shared = { policies: [{ partitionKey: [['header:x-a', undefined]] }] }
    expect(await described({})).toMatchObject(shared)
    expect(await described({ onMissingKey: 'share' })).toMatchObject(shared)
    const skipped = { policies: [], unmet: [{ unmet: 'key', missing: 'header:x-a' }] }
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
    // key part, headers, fault
    ['cookie:a', { cookie: 'a=1; a=2' }, 'unreadable'],
    ['api-key', { 'x-api-key': 'one, two' }, 'unreadable'],
    ['api-key', { 'x-api-key': 'unknown' }, 'unverified'],
    ['jwt:sub', { authorization: 'Bearer a.b.c, Bearer d.e.f' }, 'unreadable'],
    ['jwt:sub', { authorization: 'Bearer a.b.c' }, 'unverified'],
  ] as const)('the key %s of the headers %j, which is %s', (key, headers, fault) => {
    const of = async (onMissingKey: PolicyOptions['onMissingKey'], mode?: 'shadow') =>
      createMatcher({
        use: [jwt({ secret: 'JWT' })],
        apiKeys: { known: 'KEYS' },
        policies: [{ name: 'a', ...base, key, onMissingKey: onMissingKey!, ...(mode && { mode }) }],
      })(
        '/',
        { headers: { ...headers, 'cf-connecting-ip': '203.0.113.7' } },
        { env: { JWT: 'x'.repeat(32), KEYS: '0'.repeat(64) } },
      )

    test.each(['share', 'skip'] as const)(
      "With onMissingKey '%s' an unusable key counts in the shared quota.",
      async (onMissingKey) => {
        expect(await of(onMissingKey)).toEqual({
          policies: [expect.objectContaining({ partitionKey: [[key, undefined, fault]] })],
        })
      },
    )

    test("With onMissingKey 'refuse' a request with an unusable key is denied.", async () => {
      expect(await of('refuse')).toEqual({
        denied: { by: 'a', [fault]: key },
        policies: [],
        unmet: [expect.objectContaining({ unmet: 'key', [fault]: key })],
      })
      expect((await of('refuse', 'shadow')).denied).toBe(undefined)
    })

    test('With another key in onMissingKey, a request with an unusable key counts by the other key.', async () => {
      expect(await of({ key: 'ip' })).toMatchObject({
        policies: [{ partitionKey: [['ip', '203.0.113.7']] }],
      })
    })
  })

  test("A request with a missing and an unreadable part is counted even with 'skip'.", async () => {
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

  test('The value 7 of a fallback function and the value 7 of the first function are different keys.', async () => {
    const key = (context: unknown) => (context as { user?: number }).user
    const other = (context: unknown) => (context as { tenant: number }).tenant
    const describeRequest = createMatcher({
      policies: [{ name: 'a', ...base, key, onMissingKey: { key: other } }],
    })
    const subject = async (context: unknown) => {
      const { policies } = await describeRequest('/', {}, { context })
      return policies[0]!.partitionKey
    }
    expect(await subject({ tenant: 7 })).not.toEqual(await subject({ user: 7 }))
  })

  test('A shadow policy with a missing key does not refuse the request.', async () => {
    const { denied } = await described({ onMissingKey: 'refuse', mode: 'shadow' })
    expect(denied).toBeUndefined()
  })

  test('The option onMissingKey has no effect if the key is present.', async () => {
    for (const onMissingKey of ['skip', 'refuse', { key: 'ip' }] as const) {
      expect(await described({ onMissingKey }, { 'x-a': 'b' })).toMatchObject({
        policies: [{ partitionKey: [['header:x-a', 'b']] }],
      })
    }
  })
})
