/** Checks that clients are told apart by their own addresses. */
import { lookup } from 'node:dns/promises'
import { networkInterfaces } from 'node:os'
import { inNetworks, parseAddress } from '../../src/core/base/ip.ts'
import type { Config } from '../../src/core/config/parse.ts'
import type { VerifiedDecision } from '../../src/features/verify/verified.ts'
import { type Client, newNonce } from './client.ts'
import { type Finding, ok, problem, unknown } from './finding.ts'
import { sameAddress } from './sample.ts'

/** An address for documentation (RFC 5737), which no client has. */
const FORGED = '198.51.100.77'

const PRIVATE = [
  ...['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', '169.254.0.0/16'],
  ...['fc00::/7', 'fe80::/10'],
]
const LOCAL = ['127.0.0.0/8', '::1/128']

/** A test for addresses as text. */
function among(networks: string[]): (text: string) => boolean {
  const isIn = inNetworks(networks)
  return (text) => {
    const address = parseAddress(text)
    return address !== undefined && isIn(address)
  }
}
const isLocal = among(LOCAL)
const isPrivate = among(PRIVATE)

/** The addresses of this machine. */
const ownAddresses = () =>
  Object.values(networkInterfaces()).flatMap((all) =>
    (all ?? []).map(({ address }) => sameAddress(address)),
  )

/** True for a host in a network of its own, whose clients have private addresses too. */
async function isInside(host: string): Promise<boolean> {
  const found = parseAddress(host)
    ? [{ address: host }]
    : await lookup(host, { all: true }).catch(() => [])
  return found.some(({ address }) => isPrivate(address) || isLocal(address))
}

/** The first public address of a list, as a proxy has written it. Those before it are on the way out of this machine's network. */
function firstIn(field = ''): string[] {
  const all = field
    .split(/[,;]/)
    .map((entry) => sameAddress(entry.replace(/^\s*for=/i, '').replace(/[[\]"]/g, '')))
    .filter((entry) => parseAddress(entry))
  return all
    .filter((one) => !isPrivate(one) && !isLocal(one))
    .concat(all)
    .slice(0, 1)
}

/** The addresses that proxies report of this command, which sends none of these fields. */
function reportedIn(fields: Record<string, string>): string[] {
  const of = (...names: string[]) => names.flatMap((name) => firstIn(fields[name]))
  const best = of('cf-connecting-ip', 'x-forwarded-for')
  return best.length > 0 ? best : of('forwarded', 'x-real-ip')
}

/** @param decision of a request without any of these fields */
export async function checkAddress(
  { policies, clientAddress }: Config,
  hostname: string,
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
  const reported = reportedIn(forwarded)
  const host = hostname.replace(/[[\]]/g, '')
  const counted = sameAddress(address)
  const isOwn = ownAddresses().includes(counted)
  const isUnclear = reported.length === 0 && isPrivate(address) && !isOwn
  const inside = isUnclear && (await isInside(host))
  const hides = reported.length > 0 ? !reported.includes(counted) : isUnclear && !inside
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
  // Cloudflare refuses a request with a field of its own, and another server may believe it.
  const special = clientAddress === 'cloudflare' ? 'cf-connecting-ip' : 'x-real-ip'
  for (const field of new Set(['x-forwarded-for', own ?? special])) {
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
  return (isLocal(address) && !isLocal(host) && host !== 'localhost') || inside
    ? unknown(name, `not checked: the deployment sees ${address}`)
    : ok(name, `counts ${address}, and ignores a forged address`)
}
