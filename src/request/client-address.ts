import { ConfigError } from '../base/errors.ts'
import { type Address, inNetworks, parseAddress } from '../base/ip.ts'
import type { ClientAddress } from '../config/schema/client-address.ts'

/** A request with the address of its connection, if the runtime knows it. */
export interface Connection {
  request: Request
  remoteAddress: string | undefined
}

/** Reads the address of the client. Returns `undefined` if the request has none. */
export type ReadAddress = (connection: Connection) => Address | undefined

/** True on Cloudflare Workers and in workerd. There `CF-Connecting-IP` cannot be forged. */
export function isCloudflare(): boolean {
  const { navigator } = globalThis as { navigator?: { userAgent?: string } }
  return navigator?.userAgent === 'Cloudflare-Workers'
}

/**
 * Compiles the setting `clientAddress`. Without a setting, the address is `CF-Connecting-IP` on Cloudflare.
 * @throws {ConfigError} when it reads the first address, without a setting outside of Cloudflare: every client would share one quota
 */
export function addressReader(setting: ClientAddress | undefined): ReadAddress {
  if (setting === undefined) {
    return (connection) => {
      if (isCloudflare()) return fromCloudflare(connection)
      throw new ConfigError([
        {
          path: 'clientAddress',
          expected:
            '"socket" if clients connect directly, or { forwardedFor: { trustedProxies } } behind a proxy, because this runtime is not Cloudflare Workers',
          got: 'nothing',
        },
      ])
    }
  }
  if (setting === 'cloudflare') return fromCloudflare
  if (setting === 'socket') return peerOf
  if (typeof setting === 'function') return ({ request }) => toAddress(setting(request))
  return 'header' in setting ? fromHeader(setting) : fromForwardedFor(setting.forwardedFor)
}

const fromCloudflare: ReadAddress = ({ request }) =>
  parseAddress(request.headers.get('cf-connecting-ip') ?? '')

/** @throws {ConfigError} if the runtime does not report the address of the connection */
function peerOf({ remoteAddress }: Connection): Address | undefined {
  if (remoteAddress !== undefined) return toAddress(remoteAddress)
  throw new ConfigError([
    {
      path: 'clientAddress',
      expected:
        'a number of trustedProxies, or a function, because this runtime does not report the address of the connection',
      got: 'a setting that needs it',
    },
  ])
}

function fromHeader({
  header,
  trustedProxies,
}: Extract<ClientAddress, { header: string }>): ReadAddress {
  const sent: ReadAddress = ({ request }) => toAddress(request.headers.get(header))
  if (typeof trustedProxies === 'number') return sent
  const isTrusted = inNetworks(trustedProxies)
  return (connection) => {
    const peer = peerOf(connection)
    return peer && isTrusted(peer) ? sent(connection) : peer
  }
}

/**
 * Walks `X-Forwarded-For` from its end, where the nearest proxy has written, to the first address that is not a trusted proxy. A client
 * can write only what is before that address.
 */
function fromForwardedFor({
  trustedProxies,
}: Extract<ClientAddress, { forwardedFor: unknown }>['forwardedFor']): ReadAddress {
  const chainOf = ({ request }: Connection) =>
    (request.headers.get('x-forwarded-for') ?? '').split(',')
  // The nearest proxy is the peer, which is not in the field. So n - 1 of n proxies are in the field.
  if (typeof trustedProxies === 'number') {
    return (connection) => toAddress(chainOf(connection).at(-trustedProxies))
  }
  const isTrusted = inNetworks(trustedProxies)
  return (connection) => {
    const chain = chainOf(connection)
    let address = peerOf(connection)
    while (address && isTrusted(address) && chain.length > 0) {
      const previous = chain.pop()!
      if (previous.trim() === '') return address
      address = toAddress(previous)
    }
    return address
  }
}

/** Parses an address as proxies write it: with a port (`203.0.113.7:443`, `[2001:db8::1]:443`), or in brackets. */
function toAddress(text: string | undefined | null): Address | undefined {
  const bare = text?.trim() ?? ''
  const [, inBrackets] = /^\[([^\]]*)\](?::\d+)?$/.exec(bare) ?? []
  return parseAddress(inBrackets ?? bare.replace(/^([\d.]+):\d+$/, '$1'))
}
