import * as v from 'valibot'
import { networkRange } from '../../base/ip.ts'
import { isObject } from '../../base/json.ts'
import { isNetworkName } from '../trusted-names.ts'
import { either, type Input, list, object, pattern, whole } from './shapes.ts'

/** A number of proxies, or their networks. */
const trustedProxies = either(
  (input) => typeof input === 'number',
  list(
    v.custom<string>(
      (input) =>
        typeof input === 'string' && (isNetworkName(input) || networkRange(input) !== undefined),
      'a number of proxies, addresses and networks like "10.0.0.0/8", or names like "cloudflare"',
    ),
  ),
  whole(1, 32, 'of proxies from 1 to 32'),
)

const forwardedForFields = () => ({
  /**
   * The proxies in front of the app: their addresses and networks, or their number if clients can only connect through them. The names
   * `cloudflare`, `loopback` and `private` stand for networks. Required.
   */
  trustedProxies,
})

const headerFields = () => ({
  /** The name of the header in which the proxy sends the client address, such as `'x-real-ip'`. Required. */
  header: pattern('the name of a header', /^[\w!#$%&'*+.^`|~-]+$/),
  ...forwardedForFields(),
})

const wrapped = () => ({ forwardedFor: object(forwardedForFields) })

/** A header with the address of the client, which trusted proxies set. */
export interface AddressHeader extends Input<ReturnType<typeof headerFields>> {}
/** `X-Forwarded-For`, to which each proxy appends the address of its peer. */
export interface ForwardedFor extends Input<ReturnType<typeof wrapped>> {}

/**
 * The source of the client address.
 * - `cloudflare`: `CF-Connecting-IP`, which Cloudflare sets on every request to a Worker.
 * - `socket`: the address of the connection, for a server that clients connect to directly.
 * - `{ header, trustedProxies }`: a header that a trusted proxy sets.
 * - `{ forwardedFor: { trustedProxies } }`: the last address in `X-Forwarded-For` that is not a trusted proxy.
 * - a function of the request that returns an address.
 */
export type ClientAddressOptions =
  | 'cloudflare'
  | 'socket'
  | AddressHeader
  | ForwardedFor
  | ((request: Request) => string | undefined | null)

const EXPECTED =
  '"cloudflare", "socket", { header, trustedProxies }, { forwardedFor: { trustedProxies } }, or a function'

const plain = v.custom<'cloudflare' | 'socket' | ((request: Request) => string | undefined | null)>(
  (input) => input === 'cloudflare' || input === 'socket' || typeof input === 'function',
  EXPECTED,
)

/** Parses to the options themselves, with a list of networks or a number. */
export const clientAddress = either(
  isObject,
  plain,
  either(
    (input) => isObject(input) && 'forwardedFor' in input,
    object(headerFields),
    object(wrapped),
  ),
)
export type ClientAddress = v.InferOutput<typeof clientAddress>
