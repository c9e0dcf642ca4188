/** Checks that clients are told apart by their own addresses. */
import { inNetworks, parseAddress } from '../../src/core/base/ip.ts'
import type { Config } from '../../src/core/config/parse.ts'
import type { VerifiedDecision } from '../../src/features/verify/verified.ts'
import { type Client, newNonce } from './client.ts'
import { type Finding, ok, problem, unknown } from './finding.ts'
import { sameAddress } from './sample.ts'

/** An address for documentation (RFC 5737), which no client has. */
const FORGED = '198.51.100.77'

const isPrivate = inNetworks([
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  'fc00::/7',
])
const isLocal = inNetworks(['127.0.0.0/8', '::1/128'])

/** @param decision of a request without any of these fields */
export async function checkAddress(
  { policies, clientAddress }: Config,
  host: string,
  { address, forwarded = {} }: VerifiedDecision,
  client: Client,
): Promise<Finding | undefined> {
  const name = 'address'
  if (!policies.some(({ key }) => key.some(({ source }) => source === 'ip'))) return undefined
  if (address === undefined) {
    return problem(
      name,
      'the deployment finds no address of the client: all clients share one quota. Set clientAddress',
    )
  }
  // This command sends none of these fields, so a proxy has written them.
  const reported = Object.values(forwarded)
    .flatMap((value) => value.split(/[,;]/))
    .map((entry) => sameAddress(entry.replace(/^\s*for=/i, '').replace(/[[\]]/g, '')))
    .filter((entry) => parseAddress(entry))
  const isOneOf = (test: (address: readonly number[]) => boolean) => {
    const parsed = parseAddress(address)
    return parsed !== undefined && test(parsed)
  }
  const hides =
    (reported.length > 0 && !reported.includes(sameAddress(address))) ||
    (isOneOf(isPrivate) &&
      !isOneOf((one) => parseAddress(host) !== undefined && isPrivate(one)) &&
      !/^localhost$|^[\d.:[\]]+$/.test(host))
  if (hides) {
    const of = reported[0] ? `, which reports ${reported[0]}` : ''
    return problem(
      name,
      `counts ${address}, the address of a proxy in front${of}: all clients share one quota. Set clientAddress to the field that the proxy writes`,
    )
  }
  const own =
    typeof clientAddress === 'object' && 'header' in clientAddress
      ? clientAddress.header
      : undefined
  // Cloudflare refuses a request with a field of its own.
  for (const field of new Set(['x-forwarded-for', own ?? 'x-real-ip'])) {
    if (field.startsWith('cf-')) continue
    const { decision } = await client.send(
      { method: 'GET', path: '/', headers: { [field]: FORGED } },
      { nonce: newNonce() },
    )
    if (decision?.address === FORGED) {
      return problem(
        name,
        `a client chooses its own address: the server believes ${field} of everybody. List the proxies in trustedProxies, or close the way around them`,
      )
    }
  }
  return isOneOf(isLocal) && !/^(localhost|127\.|\[::1)/.test(host)
    ? unknown(name, `not checked: the deployment sees ${address}`)
    : ok(name, `counts ${address}, and ignores a forged address`)
}
