import { createServer } from 'node:http'
import { expect, test } from 'vitest'
import { checkNetworks } from '../../cli/verify/networks.ts'
import { parseConfig } from '../../src/core/config/parse.ts'
import { cloudflare } from '../../src/features/proxies/networks.ts'
import { proxies } from '../support/features.ts'
import { listen } from '../support/node-servers.ts'

const isV6 = (network: string) => network.includes(':')
const { networks, published } = cloudflare

/** What the check finds if Cloudflare publishes these networks. */
async function check(list: string[], trustedProxies = ['10.0.0.0/8', 'cloudflare']) {
  const result = {
    ipv4_cidrs: list.filter((one) => !isV6(one)),
    ipv6_cidrs: list.filter(isV6),
  }
  const url = await listen(
    createServer((_, response) => void response.end(JSON.stringify({ success: true, result }))),
  )
  const clientAddress = { forwardedFor: { trustedProxies } }
  return checkNetworks(parseConfig({ policies: [], clientAddress, use: [proxies()] }), url)
}

test('The published networks are those of the feature, in any order.', async () => {
  expect(await check([...networks].reverse())).toEqual([
    {
      name: 'networks',
      status: 'ok',
      text: `those of Cloudflare are as published (22, of ${published})`,
    },
  ])
})

test('A new network is a problem that says what to write until the next release.', async () => {
  const [first, ...others] = networks
  expect(await check([...others, '192.0.2.0/24'])).toEqual([
    {
      name: 'networks',
      status: 'problem',
      text: `those of Cloudflare, of ${published}, lack 192.0.2.0/24, so clients behind them share one quota, and still have ${first}. Update sluice, or write trustedProxies: ['cloudflare', '192.0.2.0/24']`,
    },
  ])
})

test('Without the name nothing is checked, and without the list it is unknown.', async () => {
  expect(await check([], ['loopback'])).toEqual([])
  const clientAddress = { header: 'cf-connecting-ip', trustedProxies: 'cloudflare' }
  const config = parseConfig({ policies: [], clientAddress, use: [proxies()] })
  expect(await checkNetworks(config, 'http://127.0.0.1:9/')).toMatchObject([
    { name: 'networks', status: 'unknown' },
  ])
})
