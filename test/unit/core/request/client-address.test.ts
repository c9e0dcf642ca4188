import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { ConfigError } from '../../../../src/core/base/errors.ts'
import { formatAddress } from '../../../../src/core/base/ip.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import type { ClientAddressOptions } from '../../../../src/core/config/schema/client-address.ts'
import { addressReader } from '../../../../src/core/request/client-address.ts'
import { compileForwarded } from '../../../../src/core/request/forwarded.ts'

afterEach(() => vi.unstubAllGlobals())

/** The client address of a request with these fields, over a connection from `peer`. */
function read(
  clientAddress: ClientAddressOptions | undefined,
  headers: Record<string, string>,
  peer?: string,
) {
  const config = parseConfig({ policies: [], clientAddress })
  const request = new Request('https://www.example.com/', { headers })
  const address = addressReader(config.clientAddress, undefined, { compileForwarded })({
    request,
    remoteAddress: peer,
  })
  return address && formatAddress(address)
}

describe('without a setting', () => {
  test('On Cloudflare, CF-Connecting-IP is the client address.', () => {
    vi.stubGlobal('navigator', { userAgent: 'Cloudflare-Workers' })
    expect(read(undefined, { 'cf-connecting-ip': '203.0.113.7' })).toBe('203.0.113.7')
  })

  test('Outside of Cloudflare, the first read fails and names the remedy, and no header is read.', () => {
    const headers = { 'cf-connecting-ip': '203.0.113.7', 'x-forwarded-for': '203.0.113.7' }
    expect(() => read(undefined, headers, '192.0.2.1')).toThrow(
      /clientAddress: expected "socket" .*forwardedFor.* not Cloudflare Workers/,
    )
  })
})

test('With "cloudflare", only CF-Connecting-IP is read.', () => {
  const headers = { 'cf-connecting-ip': '2001:db8::1', 'x-forwarded-for': '203.0.113.7' }
  expect(read('cloudflare', headers, '192.0.2.1')).toBe('2001:db8::1')
  expect(read('cloudflare', {}, '192.0.2.1')).toBeUndefined()
})

test('With "socket", the connection is the client, and every header is ignored.', () => {
  const headers = { 'cf-connecting-ip': '203.0.113.7', 'x-forwarded-for': '203.0.113.7' }
  expect(read('socket', headers, '192.0.2.1')).toBe('192.0.2.1')
  expect(read('socket', headers, '::ffff:192.0.2.1')).toBe('192.0.2.1')
  expect(() => read('socket', headers)).toThrow('does not report the address of the connection')
})

test('With a function, its result is the address, and an unusable one is none.', () => {
  const fromHeader = (request: Request) => request.headers.get('x-client')
  expect(read(fromHeader, { 'x-client': '203.0.113.7' })).toBe('203.0.113.7')
  expect(read(fromHeader, { 'x-client': 'unknown' })).toBeUndefined()
  expect(read(() => undefined, {})).toBeUndefined()
})

test.each([
  ['a promise', () => Promise.resolve('203.0.113.7')],
  ['a result of type object', () => ({ address: '203.0.113.7' })],
  ['a result of type number', () => 7],
])('A function that returns %s is a ConfigError at the first request.', (got, setting) => {
  const failed = expect(() => read(setting as never, {}))
  failed.toThrow(ConfigError)
  failed.toThrow(
    `clientAddress: expected a function that returns the address as text, or nothing, got ${got}`,
  )
})

test('An error of a function is the error of the request.', () => {
  const fail = () => {
    throw new RangeError('no session')
  }
  expect(() => read(fail, {})).toThrow(RangeError)
})

test.each([
  ['fe80::1%eth0', 'fe80::1'],
  ['fe80::1%br-12ab.100', 'fe80::1'],
  ['[fe80::1%wlan_0]:443', 'fe80::1'],
])('The zone of the address %s is ignored.', (peer, address) => {
  expect(read('socket', {}, peer)).toBe(address)
})

describe('a header of trusted proxies', () => {
  const setting = { header: 'X-Real-IP', trustedProxies: ['10.0.0.0/8', '2001:db8:1::/48'] }

  test.each([
    ['a trusted proxy', '10.1.2.3', '203.0.113.7', '203.0.113.7'],
    ['a trusted proxy over IPv6', '2001:db8:1::5', '2001:db8::7', '2001:db8::7'],
    ['a client that connects directly', '192.0.2.1', '203.0.113.7', '192.0.2.1'],
    ['a trusted proxy that sends garbage', '10.1.2.3', 'unknown', undefined],
    ['a trusted proxy that adds a port', '10.1.2.3', '203.0.113.7:4711', '203.0.113.7'],
    ['a trusted proxy that adds brackets', '10.1.2.3', '[2001:db8::7]:4711', '2001:db8::7'],
  ])('From %s (%s), the value %s gives the address %s.', (_, peer, value, address) => {
    expect(read(setting, { 'x-real-ip': value }, peer)).toBe(address)
  })

  test('With a number of proxies, the connection is not needed.', () => {
    const header = { header: 'x-real-ip', trustedProxies: 1 }
    expect(read(header, { 'x-real-ip': '203.0.113.7' })).toBe('203.0.113.7')
  })

  test.each<[number | string[]]>([[1], [['10.0.0.0/8']]])(
    'With the proxies %j, a request without the header has the address of its connection.',
    (trustedProxies) => {
      expect(read({ header: 'x-real-ip', trustedProxies }, {}, '10.1.2.3')).toBe('10.1.2.3')
    },
  )

  test('With networks, a runtime without the address of the connection is an error.', () => {
    expect(() => read(setting, { 'x-real-ip': '203.0.113.7' })).toThrow(
      'does not report the address of the connection',
    )
  })
})

describe('a request without an address', () => {
  test.each<[ClientAddressOptions, fits: string, lacks: string]>([
    ['cloudflare', '203.0.113.7', ''],
    [{ header: 'cf-connecting-ip', trustedProxies: 1 }, '203.0.113.7', 'unknown'],
    [{ forwardedFor: { trustedProxies: 2 } }, '203.0.113.7, 10.0.0.2', '203.0.113.7'],
    [({ headers }) => headers.get('x-forwarded-for'), '203.0.113.7', 'unknown'],
  ])(
    'With the setting %j, only a request without an address is logged.',
    (setting, fits, lacks) => {
      const lines: string[] = []
      const readAddress = addressReader(setting as never, (event) => void lines.push(event), {
        compileForwarded,
      })
      for (const value of [fits, lacks]) {
        const headers = { 'cf-connecting-ip': value, 'x-forwarded-for': value }
        const request = new Request('https://www.example.com/', { headers })
        expect(readAddress({ request, remoteAddress: '10.0.0.1' }) !== undefined).toBe(
          value === fits,
        )
      }
      expect(lines).toEqual(['no-address'])
    },
  )
})

test('The log says that the address of the connection counts instead of the header.', () => {
  const lines: string[][] = []
  const setting = { forwardedFor: { trustedProxies: 1 } }
  const readAddress = addressReader(setting, (...line) => void lines.push(line as string[]), {
    compileForwarded,
  })
  const request = new Request('https://www.example.com/')
  readAddress({ request, remoteAddress: '10.0.0.1' })
  expect(lines).toEqual([
    ['no-address', 'connection', 'no x-forwarded-for: the address of the connection counts'],
  ])
})

describe('X-Forwarded-For', () => {
  const listed = { forwardedFor: { trustedProxies: ['10.0.0.0/8', '2001:db8:1::/48'] } }

  test.each([
    ['203.0.113.7', '10.0.0.1', '203.0.113.7'],
    ['203.0.113.7, 10.0.0.2', '10.0.0.1', '203.0.113.7'],
    ['198.51.100.1, 203.0.113.7, 10.0.0.2', '10.0.0.1', '203.0.113.7'],
    ['2001:db8::7, 2001:db8:1::2', '10.0.0.1', '2001:db8::7'],
    ['203.0.113.7:4711, [2001:db8:1::2]:443', '10.0.0.1', '203.0.113.7'],
    ['::ffff:203.0.113.7', '10.0.0.1', '203.0.113.7'],
    ['203.0.113.7', '192.0.2.1', '192.0.2.1'],
    ['10.0.0.9, 10.0.0.2', '10.0.0.1', '10.0.0.9'],
    ['', '10.0.0.1', '10.0.0.1'],
    ['203.0.113.7, ::ffff:10.0.0.2, [2001:db8:1::2]', '::ffff:10.0.0.1', '203.0.113.7'],
    ['203.0.113.7, , 10.0.0.2', '10.0.0.1', '10.0.0.2'],
    ['203.0.113.7,,', '10.0.0.1', '10.0.0.1'],
    ['203.0.113.7, unknown', '10.0.0.1', undefined],
    ['203.0.113.7, <script>', '192.0.2.1', '192.0.2.1'],
  ])('The field "%s" over a connection from %s gives the address %s.', (field, peer, address) => {
    expect(read(listed, { 'x-forwarded-for': field }, peer)).toBe(address)
  })

  test('The client before 10,000 trusted proxies is found.', () => {
    const field = `203.0.113.7${', 10.0.0.2'.repeat(10_000)}`
    expect(read(listed, { 'x-forwarded-for': field }, '10.0.0.1')).toBe('203.0.113.7')
  })

  test.each([
    [1, '198.51.100.1, 203.0.113.7', '203.0.113.7'],
    [2, '198.51.100.1, 203.0.113.7, 10.0.0.2', '203.0.113.7'],
    [2, '203.0.113.7', undefined],
    [1, '', undefined],
  ])('With %i proxies, the field "%s" gives the address %s.', (trustedProxies, field, address) => {
    expect(read({ forwardedFor: { trustedProxies } }, { 'x-forwarded-for': field })).toBe(address)
  })

  test('With a number, a request without the field has the address of its connection.', () => {
    const counted = { forwardedFor: { trustedProxies: 2 } }
    expect(read(counted, {}, '10.0.0.1')).toBe('10.0.0.1')
    expect(read(counted, { 'x-forwarded-for': '' }, '10.0.0.1')).toBe('10.0.0.1')
    // Too few entries: a wrong number, which must not stay hidden.
    expect(read(counted, { 'x-forwarded-for': '203.0.113.7' }, '10.0.0.1')).toBeUndefined()
  })

  test('A client cannot change its address by what it writes into the field.', () => {
    const word = fc.oneof(fc.ipV4(), fc.ipV6(), fc.constantFrom('unknown', '', '10.0.0.3', '1'))
    fc.assert(
      fc.property(fc.array(word, { maxLength: 5 }), (forged) => {
        const field = [...forged, '203.0.113.7', '10.0.0.2'].join(', ')
        expect(read(listed, { 'x-forwarded-for': field }, '10.0.0.1')).toBe('203.0.113.7')
        const counted = { forwardedFor: { trustedProxies: 2 } }
        expect(read(counted, { 'x-forwarded-for': field })).toBe('203.0.113.7')
      }),
    )
  })
})

test.each([
  ['forwarded', 'clientAddress: expected "cloudflare", "socket", { header, trustedProxies }'],
  [{ header: 'x-real-ip' }, 'clientAddress.trustedProxies: expected'],
  [{ header: 'a b', trustedProxies: 1 }, 'clientAddress.header: expected the name of a header'],
  [{ forwardedFor: { trustedProxies: 0 } }, 'a whole number of proxies from 1 to 32'],
  [{ forwardedFor: { trustedProxies: ['10.0.0.1/8'] } }, 'networks like "10.0.0.0/8"'],
  [{ forwardedFor: { trustedProxies: [] } }, 'at least one value'],
  [{ forwardFor: {} }, 'clientAddress'],
])('The setting %j is refused with a message that names the alternatives.', (setting, message) => {
  expect(() => read(setting as never, {})).toThrow(message)
})
