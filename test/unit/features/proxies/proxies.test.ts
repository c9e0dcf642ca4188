import { readFileSync } from 'node:fs'
import ipaddr from 'ipaddr.js'
import { describe, expect, test } from 'vitest'
import { formatAddress, networkRange } from '../../../../src/core/base/ip.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import type { ClientAddressOptions } from '../../../../src/core/config/schema/client-address.ts'
import { createLimiter } from '../../../../src/core/create.ts'
import { defaults } from '../../../../src/features/defaults.ts'
import { cloudflare, networks } from '../../../../src/features/proxies/networks.ts'
import { proxies } from '../../../support/features.ts'

/** The address of a client whose request has these fields and comes from `peer`. */
function read(clientAddress: ClientAddressOptions, headers: Record<string, string>, peer: string) {
  const options = { policies: [], clientAddress, use: [proxies()] }
  const { readAddress } = createLimiter(options, { byDefault: defaults() })
  const request = new Request('https://www.example.com/', { headers })
  const address = readAddress({ request, remoteAddress: peer })
  return address && formatAddress(address)
}

describe('trusted proxies by name', () => {
  const sent = { 'cf-connecting-ip': '203.0.113.7' }
  const behindCloudflare = { header: 'cf-connecting-ip', trustedProxies: 'cloudflare' }

  test.each([
    ['a server of Cloudflare', '172.71.99.1', '203.0.113.7'],
    ['a server of Cloudflare over IPv6', '2a06:98c7::1', '203.0.113.7'],
    ['a client that reaches the server directly', '192.0.2.1', '192.0.2.1'],
    ['a neighbour of the networks', '104.28.0.1', '104.28.0.1'],
    ['a private network', '10.0.0.1', '10.0.0.1'],
  ])('"cloudflare" decides on %s (%s).', (_, peer, address) => {
    expect(read(behindCloudflare, sent, peer)).toBe(address)
  })

  test('A list mixes names and networks: each proxy of a chain is trusted by its own entry.', () => {
    const trustedProxies = ['cloudflare', 'loopback', '198.51.100.0/24']
    const chain = { 'x-forwarded-for': '192.0.2.9, 203.0.113.7, 172.71.99.1, 198.51.100.2' }
    expect(read({ forwardedFor: { trustedProxies } }, chain, '127.0.0.1')).toBe('203.0.113.7')
    const withoutCloudflare = { forwardedFor: { trustedProxies: trustedProxies.slice(1) } }
    expect(read(withoutCloudflare, chain, '::1')).toBe('172.71.99.1')
  })

  test('"private" and "loopback" are what an independent library calls so.', () => {
    const range = (address: string) => ipaddr.process(address).range()
    for (const network of networks.loopback!) {
      expect(networkRange(network)!.map((end) => range(formatAddress(end)))).toEqual([
        'loopback',
        'loopback',
      ])
    }
    for (const network of networks.private!) {
      const [first, last] = networkRange(network)!.map((end) => range(formatAddress(end)))
      expect(['private', 'uniqueLocal', 'linkLocal']).toContain(first)
      expect(last).toBe(first)
    }
  })
})

describe('a name that does not help', () => {
  const parse = (trustedProxies: string[], use = [proxies()]) =>
    parseConfig({ policies: [], clientAddress: { header: 'x-real-ip', trustedProxies }, use })

  test('An unknown name is an error that lists the names.', () => {
    expect(() => parse(['10.0.0.0/8', 'cloudfront'])).toThrow(
      'clientAddress.trustedProxies: expected one of cloudflare, loopback, private, or a network like "10.0.0.0/8"',
    )
  })

  test('A word with a typo in a network is not taken for a name.', () => {
    expect(() => parse(['10.0.0.0/33'])).toThrow('names like "cloudflare"')
  })
})

test('The date of the networks is the same in the documentation.', () => {
  for (const file of ['src/features/proxies/declaration.ts', 'docs/reference/configuration.md']) {
    expect(readFileSync(file, 'utf8')).toContain(`of ${cloudflare.published}`)
  }
})
