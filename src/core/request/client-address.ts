import { ConfigError } from '../base/errors.ts'
import { type Address, inNetworks, parseAddress } from '../base/ip.ts'
import type { Log } from '../base/log.ts'
import { Recent } from '../base/recent.ts'
import { isCloudflare } from '../base/runtime.ts'
import type { ClientAddress } from '../config/schema/client-address.ts'

/** A request with the address of its connection, if the runtime knows it. */
export interface Connection {
  request: Request
  remoteAddress: string | undefined
}

/** Reads the address of the client. Returns `undefined` if the request has none. */
export type ReadAddress = (connection: Connection) => Address | undefined

/**
 * Compiles the setting `clientAddress`. Without a setting, the address is `CF-Connecting-IP` on Cloudflare.
 * @param log gets an event if a request has no address, or not where it should be: by default such requests share one quota, so a wrong
 * setting must be visible
 * @param networks what the names in `trustedProxies` stand for
 * @throws {ConfigError} when it reads the first address, without a setting outside of Cloudflare: every client would share one quota
 */
export function addressReader(
  setting: ClientAddress | undefined,
  log: Log = () => {},
  networks: Networks = {},
): ReadAddress {
  const read = readerOf(setting, log, networks)
  if (setting === undefined) return read
  return (connection) => {
    const address = read(connection)
    if (!address) log('no-address', '', 'clientAddress finds no address in a request')
    return address
  }
}

type Networks = Readonly<Record<string, readonly string[]>>

function readerOf(setting: ClientAddress | undefined, log: Log, networks: Networks): ReadAddress {
  if (setting === undefined && isCloudflare()) return fromCloudflare
  if (setting === undefined) {
    return () =>
      fail(
        '"socket" if clients connect directly, or { forwardedFor: { trustedProxies } } behind a proxy, because this runtime is not Cloudflare Workers',
        'nothing',
      )
  }
  if (setting === 'cloudflare') return fromCloudflare
  if (setting === 'socket') return peerOf
  if (typeof setting === 'function') return ({ request }) => toAddress(textOf(setting(request)))
  return 'header' in setting
    ? fromHeader(setting, log, networks)
    : fromForwardedFor(setting.forwardedFor, log, networks)
}

function fail(expected: string, got: string): never {
  throw new ConfigError([{ path: 'clientAddress', expected, got }])
}

const fromCloudflare: ReadAddress = ({ request }) =>
  toPlainAddress(request.headers.get('cf-connecting-ip'))

/** @throws {ConfigError} if the result of a function is not text, such as the promise of an asynchronous function */
function textOf(result: unknown): string | undefined {
  if (typeof result === 'string') return result
  if (result === undefined || result === null) return undefined
  const got = result instanceof Promise ? 'a promise' : `a result of type ${typeof result}`
  return fail('a function that returns the address as text, or nothing', got)
}

/** @throws {ConfigError} if the runtime does not report the address of the connection */
function peerOf({ remoteAddress }: Connection): Address | undefined {
  if (remoteAddress !== undefined) return toAddress(remoteAddress)
  return fail(
    'a number of trustedProxies, or a function, because this runtime does not report the address of the connection, or the client has disconnected',
    'a setting that needs it',
  )
}

const isIn = (trusted: string[], networks: Networks) =>
  inNetworks(trusted.flatMap((one) => networks[one] ?? one))

/**
 * Reads the field of a trusted proxy. A request without the field, such as a health check by the proxy itself, has the address of its
 * connection.
 */
const orPeer =
  (header: string, log: Log, read: (field: string) => Address | undefined): ReadAddress =>
  ({ request, remoteAddress }) => {
    const field = request.headers.get(header)
    if (field) return read(field)
    const peer = toAddress(remoteAddress)
    if (peer) {
      log('no-address', 'connection', `no ${header}: the address of the connection counts`)
    }
    return peer
  }

function fromHeader(
  { header, trustedProxies }: Extract<ClientAddress, { header: string }>,
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

/**
 * Walks `X-Forwarded-For` from its end, where the nearest proxy has written, to the first address that is not a trusted proxy. A client
 * can write only what is before that address.
 */
function fromForwardedFor(
  { trustedProxies }: Extract<ClientAddress, { forwardedFor: unknown }>['forwardedFor'],
  log: Log,
  networks: Networks,
): ReadAddress {
  // The nearest proxy is the peer, which is not in the field. So n - 1 of n proxies are in the field.
  if (typeof trustedProxies === 'number') {
    return orPeer(FORWARDED_FOR, log, (field) => toAddress(field.split(',').at(-trustedProxies)))
  }
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

/** Reads an address as proxies and sockets write it: with a port (`203.0.113.7:443`, `[2001:db8::1]:443`), in brackets, or with a zone. */
function parsePeer(text: string): Address | undefined {
  const bare = text.trim().replace(/%[^\]]*/, '') // a zone names a network interface of the server: fe80::1%eth0.100
  const [, inBrackets] = /^\[([^\]]*)\](?::\d+)?$/.exec(bare) ?? []
  return parseAddress(inBrackets ?? bare.replace(/^([\d.]+):\d+$/, '$1'))
}

/** The longest text whose address is kept, in characters. */
const MAX_LENGTH = 64

/** A parser that keeps the addresses of recent clients by their text. Equal texts get the same object. */
function recently(parse: (text: string) => Address | undefined) {
  const recent = new Recent<Address>(5_000)
  return (text: string | undefined | null): Address | undefined => {
    if (!text) return undefined
    const known = recent.get(text)
    if (known) return known
    const address = parse(text)
    // A slice of a long field would keep the whole field in memory.
    if (address && text.length <= MAX_LENGTH) recent.set(copyOf(text), address)
    return address
  }
}

const copyOf = (text: string) =>
  String.fromCharCode(...Array.from(text, (one) => one.charCodeAt(0)))

const toPlainAddress = recently(parseAddress)
const toAddress = recently(parsePeer)
