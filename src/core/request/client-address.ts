import { ConfigError } from '../base/errors.ts'
import { type Address, parseAddress } from '../base/ip.ts'
import type { Log } from '../base/log.ts'
import { needed } from '../base/needed.ts'
import { Recent } from '../base/recent.ts'
import { isCloudflare } from '../base/runtime.ts'
import type { ClientAddress } from '../config/schema/client-address.ts'

export interface Connection {
  request: Request
  remoteAddress: string | undefined
}

/** Reads the address of the client; `undefined` if the request has none. */
export type ReadAddress = (connection: Connection) => Address | undefined

/**
 * Compiles the setting `clientAddress`. Without one, the address is `CF-Connecting-IP` on Cloudflare.
 * @param log hears of a request without an address: by default such requests share one quota, so a wrong setting must be visible
 * @throws {ConfigError} when it reads the first address, without a setting outside of Cloudflare: every client would share one quota
 */
export function addressReader(
  setting: ClientAddress | undefined,
  log: Log = () => {},
  stages: AddressStages = {},
): ReadAddress {
  if (setting === undefined) return isCloudflare() ? fromCloudflare : withoutSetting
  const read = readerOf(setting, log, stages)
  return (connection) => {
    const address = read(connection)
    if (!address) log('no-address', '', 'clientAddress finds no address in a request')
    return address
  }
}

export interface AddressStages {
  /** Compiles a setting that reads a field of trusted proxies. */
  compileForwarded?: (setting: Forwarded, log: Log, networks: Networks) => ReadAddress
  /** The networks that names in `trustedProxies` stand for. */
  networks?: Networks
}

export type Forwarded = Exclude<ClientAddress, string | ((request: Request) => unknown)>
export type Networks = Readonly<Record<string, readonly string[]>>

function readerOf(
  setting: ClientAddress,
  log: Log,
  { compileForwarded, networks = {} }: AddressStages,
): ReadAddress {
  if (setting === 'cloudflare') return fromCloudflare
  if (setting === 'socket') return peerOf
  if (typeof setting === 'function') return ({ request }) => toAddress(textOf(setting(request)))
  return needed(compileForwarded, 'forwarded')(setting, log, networks)
}

const withoutSetting: ReadAddress = () =>
  fail(
    '"socket" if clients connect directly, or { forwardedFor: { trustedProxies } } behind a proxy, because this runtime is not Cloudflare Workers',
    'nothing',
  )

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
export function peerOf({ remoteAddress }: Connection): Address | undefined {
  if (remoteAddress !== undefined) return toAddress(remoteAddress)
  return fail(
    'a number of trustedProxies, or a function, because this runtime does not report the address of the connection, or the client has disconnected',
    'a setting that needs it',
  )
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

// A bundle without an address has neither.
const toPlainAddress = /* @__PURE__ */ recently(parseAddress)
export const toAddress = /* @__PURE__ */ recently(parsePeer)
