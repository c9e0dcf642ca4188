/** What `sluice verify` concludes from the address that a deployment counts. */
import { networkInterfaces } from 'node:os'
import { expect, test } from 'vitest'
import { checkAddress } from '../../cli/verify/address.ts'
import type { Client } from '../../cli/verify/client.ts'
import { parseConfig } from '../../src/core/config/parse.ts'

const config = (clientAddress?: unknown) =>
  parseConfig({
    policies: [{ name: 'all', limit: 5, window: '1h' }],
    ...(clientAddress !== undefined && { clientAddress }),
  } as Parameters<typeof parseConfig>[0])

/** Checks an address. `believed` is the field that the deployment takes the address of a client from. */
const check = (
  host: string,
  address: string,
  forwarded: Record<string, string> | undefined,
  { believed = '', clientAddress }: { believed?: string; clientAddress?: unknown } = {},
) => {
  const send = async ({ headers }: { headers: Record<string, string> }) => ({
    decision: { address: headers[believed] ?? address },
  })
  const decision = { address, ...(forwarded && { forwarded }) }
  return checkAddress(config(clientAddress), host, decision as never, { send } as unknown as Client)
}

const CLIENT = '203.0.113.7'
const EDGE = '198.51.100.1'
const own = Object.values(networkInterfaces())
  .flatMap((all) => all ?? [])
  .find(({ internal, family }) => !internal && family === 'IPv4')?.address

test.each<[string, string, string, Record<string, string> | undefined, string]>([
  ['a client', 'www.example.com', CLIENT, undefined, 'ok'],
  [
    'a client that Cloudflare reports',
    'www.example.com',
    CLIENT,
    { 'cf-connecting-ip': CLIENT },
    'ok',
  ],
  [
    'a client behind a chain',
    'www.example.com',
    CLIENT,
    { 'x-forwarded-for': `${CLIENT}, ${EDGE}` },
    'ok',
  ],
  [
    'a client behind a proxy of its own network',
    'www.example.com',
    CLIENT,
    { 'x-forwarded-for': `10.1.2.3, ${CLIENT}` },
    'ok',
  ],
  [
    'a client that Cloudflare reports, behind nginx',
    'www.example.com',
    CLIENT,
    { 'x-forwarded-for': EDGE, 'x-real-ip': EDGE, 'cf-connecting-ip': CLIENT },
    'ok',
  ],
  [
    'an IPv6 client',
    'www.example.com',
    '2001:db8::7',
    { forwarded: 'for="[2001:db8::7]";proto=https' },
    'ok',
  ],
  [
    'the second proxy',
    'www.example.com',
    EDGE,
    { 'x-forwarded-for': `${CLIENT}, ${EDGE}` },
    'problem',
  ],
  [
    'a proxy that reports its client',
    'www.example.com',
    '10.0.0.2',
    { 'x-forwarded-for': CLIENT },
    'problem',
  ],
  ['a private address of a public host', '203.0.113.99', '10.0.0.2', undefined, 'problem'],
  ['a private address of a private host', '10.0.0.9', '10.0.0.2', undefined, 'unknown'],
  [
    'a private address of a private IPv6 host',
    '[fd12:3456::1]',
    'fd12:3456::2',
    undefined,
    'unknown',
  ],
  ['this machine', 'localhost', '127.0.0.1', undefined, 'ok'],
  ['this machine by IPv6', '[::1]', '::1', undefined, 'ok'],
  ['a local proxy of a public host', '203.0.113.99', '127.0.0.1', undefined, 'unknown'],
])('The counted address is that of %s.', async (_, host, address, forwarded, status) => {
  expect(await check(host, address, forwarded)).toMatchObject({ name: 'address', status })
})

test.runIf(own !== undefined)('An address of this machine is that of the client.', async () => {
  expect(await check('203.0.113.99', own!, undefined)).toMatchObject({ status: 'ok' })
})

test.each([
  ['x-forwarded-for', undefined],
  ['x-real-ip', undefined],
  ['x-client', { header: 'x-client', trustedProxies: 1 }],
  ['cf-connecting-ip', 'cloudflare'],
])('A server that believes %s of everybody is found.', async (believed, clientAddress) => {
  const found = await check('www.example.com', CLIENT, undefined, { believed, clientAddress })
  expect(found).toMatchObject({
    status: 'problem',
    text: expect.stringContaining(`the server believes ${believed} of everybody`),
  })
})
