import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { requestDescription } from '../../../src/api/schema.ts'
import { checkedBody } from '../../../src/api/shapes.ts'
import { type ClientOptions, createClient, describeRequest } from '../../../src/client/client.ts'
import { anyUrl } from '../../support/any-text.ts'
import { isLong } from '../../support/long.ts'

const TOKEN = 'a-token-of-the-api'

describe('createClient', () => {
  const url = 'https://limits.example.com'
  test.each<[string, Partial<ClientOptions>]>([
    ['an invalid URL', { url: 'limits.example.com' }],
    ['another scheme', { url: 'ftp://limits.example.com' }],
    ['a password in the URL', { url: 'https://a:secret-in-the-url@limits.example.com' }],
    ['no token', { token: undefined as never }],
    ['a short token', { token: 'short' }],
    ['a line break in the token', { token: `${TOKEN}\n` }],
    ...[0, -1, 1.5, Number.NaN, 2 ** 31].map((deadlineMs): [string, Partial<ClientOptions>] => [
      `a deadline of ${deadlineMs}`,
      { deadlineMs },
    ]),
  ])('createClient refuses %s, and the message does not contain the secret.', (_, options) => {
    const error = (() => {
      try {
        return createClient({ url, token: TOKEN, ...options })
      } catch (error) {
        return error
      }
    })()
    expect(error).toBeInstanceOf(TypeError)
    expect(String(error)).not.toMatch(/a-token|secret/)
  })
})

describe('A cost that is not whole units', () => {
  const api = createClient({
    url: 'https://limits.example.com',
    token: TOKEN,
    onError: 'allow',
    fetch: () => Promise.reject(new Error('no call')),
  })
  test.each([Number.NaN, -1, 1.5, Number.POSITIVE_INFINITY, 2 ** 52, '3' as never, null as never])(
    '%s is an error of the program, for which onError does not answer.',
    async (cost) => {
      const expected = 'cost: expected a whole number from 0 to 2251799813685248, got '
      await expect(api.limit('p', 'k', { cost })).rejects.toThrow(`limit: ${expected}`)
      await expect(api.peek([['p', 'k']], { cost })).rejects.toThrow(`peek: ${expected}`)
      await expect(api.refund('p', 'k', { cost })).rejects.toThrow(`refund: ${expected}`)
      const url = 'https://www.example.com/'
      await expect(api.decide({ url }, { cost })).rejects.toThrow(`decide: ${expected}`)
    },
  )
})

describe('describeRequest', () => {
  test('describeRequest copies the method, URL, fields and location of a request.', () => {
    const request = new Request('https://api.example.com/login?x=1#y', {
      method: 'POST',
      headers: { 'X-Api-Key': 'k', Cookie: 'a=b' },
    })
    Object.assign(request, { cf: { country: 'DE', asn: 64500, colo: 'FRA', city: 'Berlin' } })
    expect(describeRequest(request, '203.0.113.7')).toEqual({
      method: 'POST',
      url: 'https://api.example.com/login?x=1',
      ip: '203.0.113.7',
      headers: { 'x-api-key': 'k', cookie: 'a=b' },
      country: 'DE',
      asn: '64500',
      colo: 'FRA',
    })
  })

  const manyFields = (length: number, value: string) =>
    Object.fromEntries(Array.from({ length }, (_, i) => [`x-${i}`, value]))
  interface Sent {
    path?: string
    headers?: Record<string, string>
    ip?: string
  }
  test.each<[string, Sent]>([
    ['a URL that is too long', { path: `${'x'.repeat(9000)}?y` }],
    ['a query that is too long', { path: `x?${'y'.repeat(9000)}` }],
    ['a value that is too long', { headers: { long: 'x'.repeat(9000), short: 'y' } }],
    ['too many fields', { headers: manyFields(300, 'y') }],
    ['header fields that are too long in total', { headers: manyFields(90, '"'.repeat(1000)) }],
    ['an invalid address', { ip: 'unknown' }],
    ['an address with a zone', { ip: 'fe80::1%eth0' }],
    ['an address out of range', { ip: '1.2.3.256' }],
  ])('The decision API accepts the description of a request with %s.', (_, sent) => {
    const { path = '', headers = {}, ip } = sent
    const described = describeRequest(new Request(`https://a.example/${path}`, { headers }), ip)
    expect(checkedBody(requestDescription, described).problems).toBeUndefined()
    expect(JSON.stringify(described).length).toBeLessThan(60_000)
  })

  test('describeRequest keeps the shortest fields first.', () => {
    const headers = {
      'a-long-one': 'x'.repeat(8000),
      'b-long-one': 'x'.repeat(8190),
      'c-long-one': 'x'.repeat(8192),
      'x-tenant': 'acme',
    }
    const described = describeRequest(new Request('https://a.example/', { headers }))
    expect(Object.keys(described.headers!)).toEqual(['x-tenant', 'a-long-one', 'b-long-one'])
  })

  test('Many fields cannot displace the credentials or the named fields.', () => {
    const crowd = Array.from({ length: 150 }, (_, i) => [`x-${i}`, ''])
    const headers = {
      ...Object.fromEntries(crowd),
      authorization: 'Bearer abc',
      'x-tenant': 'acme',
    }
    const request = new Request('https://a.example/', { headers })
    expect(describeRequest(request).headers).toMatchObject({ authorization: 'Bearer abc' })
    expect(describeRequest(request, undefined, ['X-Tenant', 'x-none']).headers).toEqual({
      'x-tenant': 'acme',
    })
  })

  test('A path that is too long is left out, because a shorter one would lose a reading.', () => {
    const request = new Request(`https://a.example//${'x'.repeat(9000)}/login`)
    expect(describeRequest(request)).toMatchObject({ url: 'https://a.example/', omitted: ['path'] })
  })

  test.each([
    ['/admin/%2e%2e/x', 'a.example'],
    ['/users/8\\x', 'a.example'],
    ['/x', 'a.example#'],
    ['/x', 'a.example/y'],
  ])(
    'A path that Workers may read otherwise than a router is left out: %s of the host %s.',
    (path, host) => {
      const sent = { url: `https://${host}${path}`, method: 'GET', headers: new Headers({ host }) }
      expect(describeRequest(sent as Request)).toMatchObject({ omitted: ['path'] })
    },
  )

  test('The decision API accepts the description of any request.', () => {
    fc.assert(
      fc.property(
        anyUrl({ withFragments: true }),
        fc.dictionary(
          fc.stringMatching(/^[a-z-]{1,20}$/),
          fc.stringMatching(/^[\t -~\u00a0-\u00ff]*$/),
        ),
        fc.oneof(fc.ipV4(), fc.ipV6(), fc.ipV4Extended(), fc.string()),
        (url, headers, ip) => {
          const described = describeRequest(new Request(url, { headers: { ...headers } }), ip)
          expect(checkedBody(requestDescription, described).problems).toBeUndefined()
        },
      ),
      { numRuns: isLong ? 1000 : 200 },
    )
  })
})
