import { type Address, inNetworks } from '../base/ip.ts'
import type { Log } from '../base/log.ts'
import {
  type Forwarded,
  type Networks,
  peerOf,
  type ReadAddress,
  toAddress,
} from './client-address.ts'

export const compileForwarded = (setting: Forwarded, log: Log, networks: Networks): ReadAddress =>
  'header' in setting
    ? fromHeader(setting, log, networks)
    : fromForwardedFor(setting.forwardedFor, log, networks)

const isIn = (trusted: string[], networks: Networks) =>
  inNetworks(trusted.flatMap((one) => networks[one] ?? one))

/** Reads the field of a trusted proxy. Without it, as in a health check by the proxy itself, the address of the connection counts. */
const orPeer =
  (header: string, log: Log, read: (field: string) => Address | undefined): ReadAddress =>
  ({ request, remoteAddress }) => {
    const field = request.headers.get(header)
    if (field) return read(field)
    const peer = toAddress(remoteAddress)
    if (peer) log('no-address', 'connection', `no ${header}: the address of the connection counts`)
    return peer
  }

function fromHeader(
  { header, trustedProxies }: Extract<Forwarded, { header: string }>,
  log: Log,
  networks: Networks,
): ReadAddress {
  const sent = orPeer(header, log, toAddress)
  if (typeof trustedProxies === 'number') return sent
  const isTrusted = isIn(trustedProxies, networks)
  return (connection) => {
    const peer = peerOf(connection)
    return peer && isTrusted(peer) ? sent(connection) : peer
  }
}

const FORWARDED_FOR = 'x-forwarded-for'

/** Walks `X-Forwarded-For` from its end, the nearest proxy, to the first untrusted address. A client can write only what is before it. */
function fromForwardedFor(
  { trustedProxies }: Extract<Forwarded, { forwardedFor: unknown }>['forwardedFor'],
  log: Log,
  networks: Networks,
): ReadAddress {
  // The nearest proxy is the peer, which is not in the field. So n - 1 of n proxies are in the field.
  if (typeof trustedProxies === 'number')
    return orPeer(FORWARDED_FOR, log, (field) => toAddress(field.split(',').at(-trustedProxies)))
  const isTrusted = isIn(trustedProxies, networks)
  return (connection) => {
    const chain = (connection.request.headers.get(FORWARDED_FOR) ?? '').split(',')
    let address = peerOf(connection)
    while (address && isTrusted(address) && chain.length > 0) {
      const previous = chain.pop()!
      if (previous.trim() === '') return address
      address = toAddress(previous)
    }
    return address
  }
}
