import { isIP } from 'node:net'
import fc from 'fast-check'
import ipaddr from 'ipaddr.js'
import { expect, test } from 'vitest'
import {
  formatAddress,
  inNetworks,
  network,
  networkRange,
  parseAddress,
} from '../../../../src/core/base/ip.ts'

const networkOf = (text: string, v4: number, v6: number) => network(parseAddress(text)!, v4, v6)
const hex = (bytes: readonly number[]) =>
  bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('')

test.each([
  ['203.0.113.7', 32, 64, '203.0.113.7'],
  ['203.0.113.7', 24, 64, '203.0.113.0/24'],
  ['203.0.113.255', 25, 64, '203.0.113.128/25'],
  ['2001:db8:1:2:3:4:5:6', 32, 64, '2001:db8:1:2::/64'],
  ['2001:DB8:1:2:FFFF::', 32, 64, '2001:db8:1:2::/64'],
  ['2001:db8:1:2ff:3:4:5:6', 32, 56, '2001:db8:1:200::/56'],
  ['2001:db8::1', 32, 128, '2001:db8::1/128'],
  ['::ffff:203.0.113.7', 32, 64, '203.0.113.7'],
  ['::ffff:cb00:7107', 24, 64, '203.0.113.0/24'],
  ['::1', 32, 64, '::/64'],
])(
  'The address %s, with the prefixes /%d for IPv4 and /%d for IPv6, is in the network %s.',
  (address, v4, v6, expected) => {
    expect(networkOf(address, v4, v6)).toBe(expected)
  },
)

const NAMES_203_0_113_7 = [
  '::203.0.113.7', // IPv4-compatible
  '::ffff:0:203.0.113.7', // SIIT
  '64:ff9b::203.0.113.7', // NAT64
  '64:FF9B::CB00:7107',
  '64:ff9b:1::203.0.113.7', // NAT64 with the local prefix
  '64:ff9b:1:fffe::cb00:7107',
  '2002:cb00:7107::1', // 6to4
  '2002:cb00:7107:ffff:1:2:3:4',
  '2001:0:102:304:8000:63bf:34ff:8ef8', // Teredo
]
test.each(NAMES_203_0_113_7)(
  'The address %s is the client 203.0.113.7, in keys and in lists.',
  (text) => {
    const address = parseAddress(text)!
    expect(formatAddress(address)).toBe('203.0.113.7')
    expect(inNetworks(['203.0.113.0/24'])(address)).toBe(true)
    expect(inNetworks(['203.0.112.0/24'])(address)).toBe(false)
    expect(inNetworks(['::/0'])(address)).toBe(true)
  },
)

test.each([
  '::1', // loopback
  '::',
  '2001:db8::5efe:203.0.113.7', // ISATAP: the host chooses it
  '2001:db8:122:344::203.0.113.7', // a prefix of an operator (RFC 6052)
  '64:ff9b:1:cb00:71:700::', // the local prefix with /48
  '64:ff9b:2::203.0.113.7',
  '2003:cb00:7107::1',
  '2001:1::1',
])('The address %s is no client of IPv4.', (text) => {
  expect(formatAddress(parseAddress(text)!)).toContain(':')
  expect(inNetworks(['0.0.0.0/0'])(parseAddress(text)!)).toBe(false)
})

test('A network of addresses that embed IPv4 has these, and no other address of IPv4.', () => {
  const nat64 = inNetworks(['64:ff9b::/96'])
  expect(nat64(parseAddress('64:ff9b::203.0.113.7')!)).toBe(true)
  for (const text of ['203.0.113.7', '::ffff:203.0.113.7', '2002:cb00:7107::1']) {
    expect(nat64(parseAddress(text)!)).toBe(false)
  }
  expect(inNetworks(['::/0'])(parseAddress('::ffff:203.0.113.7')!)).toBe(false)
  expect(inNetworks(['::ffff:203.0.113.0/120'])(parseAddress('203.0.113.7')!)).toBe(true)
})

test.each([
  ...['', 'localhost', '256.1.1.1', '1.2.3.4, 5.6.7.8', '2001:db8::1::2', '203.0.113.7:80'],
  ...['6', '1.2.3', '010.0.0.1', '0x7f.0.0.1', '2130706433'], // short forms
])('The text %j is not an address.', (text) => {
  expect(parseAddress(text)).toBeUndefined()
})

/** Texts that are an address or nearly one. */
const nearlyAddress = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc
    .array(fc.constantFrom(...': :: 0 00 1 ffff FFFF 12345 1.2.3.4 256 . -1 NaN'.split(' '), ' '), {
      maxLength: 17,
    })
    .map((parts) => parts.join('')),
  fc
    .array(fc.constantFrom('0', '0', '0', 'ffff', 'db8', ''), { minLength: 7, maxLength: 9 })
    .map((groups) => groups.join(':')),
)

test('A text is an address if and only if Node parses it.', () => {
  fc.assert(
    fc.property(nearlyAddress, (text) => {
      expect(parseAddress(text) !== undefined).toBe(isIP(text) !== 0)
    }),
    { numRuns: 1000 },
  )
})

test('The bytes and the text of an address are those of ipaddr.js.', () => {
  const isNear = (text: string) => isIP(text) !== 0 && !/^::[^:]*\./.test(text) // ipaddr.js cannot read all of these
  fc.assert(
    fc.property(nearlyAddress.filter(isNear), (text) => {
      const expected = ipaddr.process(text)
      const parsed = parseAddress(text)!
      const address = parsed.outer ?? parsed
      expect(address).toEqual(expected.toByteArray())
      expect(formatAddress(address)).toBe(ipaddr.fromByteArray(expected.toByteArray()).toString())
    }),
    { numRuns: 1000 },
  )
})

test.each([
  ['fe80::1%eth0', 'fe80::1'],
  ['1::1.2.3.4', '1::102:304'],
  ['1:2:3:4:5:6:1.2.3.4', '1:2:3:4:5:6:102:304'],
  ['1:0:0:2:0:0:0:3', '1:0:0:2::3'],
  ['1:0:0:2:3:0:0:4', '1::2:3:0:0:4'],
  ['10:0:2:3:4:5:6:0', '10:0:2:3:4:5:6:0'],
  ['::', '::'],
])('The address %s is written as %s.', (text, expected) => {
  expect(formatAddress(parseAddress(text)!)).toBe(expected)
})

test.each([
  ['203.0.113.7', ['cb007107', 'cb007107']],
  ['203.0.113.0/24', ['cb007100', 'cb0071ff']],
  ['0.0.0.0/0', ['00000000', 'ffffffff']],
  ['203.0.113.7/32', ['cb007107', 'cb007107']],
  ['::ffff:203.0.113.0/120', ['cb007100', 'cb0071ff']],
  ['::/0', ['0'.repeat(32), 'f'.repeat(32)]],
  ['2001:db8::/32', ['20010db8'.padEnd(32, '0'), '20010db8'.padEnd(32, 'f')]],
])('The network %s has the range %j.', (text, range) => {
  expect(networkRange(text)?.map(hex)).toEqual(range)
})

test.each([
  '203.0.113.7/24',
  '203.0.113.0/33',
  '203.0.113.0/',
  '203.0.113.0/-1',
  '203.0.113.0/8/8',
  '203.0.113.0/0x8',
  '2001:db8::1/64',
  '10/8',
  '010.0.0.0/8',
  'fe80::1%eth0',
  '::ffff:203.0.113.0/24',
  'example.com',
  '',
  '/8',
])('The text %j is not a network.', (text) => {
  expect(networkRange(text)).toBeUndefined()
})

test('An address is in a list of networks if and only if it is in one of them.', () => {
  const v4 = fc
    .tuple(fc.integer({ min: 0, max: 0xffff }), fc.integer({ min: 16, max: 32 }))
    .map(([low, bits]) => networkOf(`10.0.${low >> 8}.${low & 255}`, bits, 64)!)
  const v6 = fc
    .tuple(fc.integer({ min: 0, max: 0xffff }), fc.integer({ min: 112, max: 128 }))
    .map(([low, bits]) => networkOf(`2001:db8::${low.toString(16)}`, 32, bits)!)
  const address = fc
    .integer({ min: 0, max: 0xffff })
    .chain((low) =>
      fc.constantFrom(`10.0.${low >> 8}.${low & 255}`, `2001:db8::${low.toString(16)}`),
    )
  fc.assert(
    fc.property(fc.array(fc.oneof(v4, v6), { maxLength: 40 }), address, (list, address) => {
      const parsed = ipaddr.parse(address)
      const expected = list.some((text) => {
        const [net, bits] = ipaddr.parseCIDR(text.includes('/') ? text : `${text}/32`)
        return net.kind() === parsed.kind() && parsed.match([net, bits] as never)
      })
      expect(inNetworks(list)(parseAddress(address)!)).toBe(expected)
    }),
    { numRuns: 1000 },
  )
})
