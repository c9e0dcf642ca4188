/** The networks of Cloudflare that `trustedProxies` names must be those that Cloudflare publishes. */
import type { Config } from '../../src/core/config/parse.ts'
import { trustedNames } from '../../src/core/config/trusted-names.ts'
import { cloudflare } from '../../src/features/proxies/networks.ts'
import { reasonOf } from './client.ts'
import { type Finding, ok, problem, unknown } from './finding.ts'

/** The list, which needs no token (https://developers.cloudflare.com/api/resources/ips). */
const PUBLISHED = 'https://api.cloudflare.com/client/v4/ips'
const TIMEOUT_MS = 10_000

/**
 * Compares the networks with the published ones.
 * @param list the address of the list. Defaults to that of Cloudflare
 * @returns nothing if the configuration does not name `cloudflare`
 */
export async function checkNetworks(
  { clientAddress }: Pick<Config, 'clientAddress'>,
  list = PUBLISHED,
): Promise<Finding[]> {
  if (!trustedNames(clientAddress).some(([name]) => name === 'cloudflare')) return []
  const name = 'networks'
  let published: string[]
  try {
    const answer = await fetch(list, { signal: AbortSignal.timeout(TIMEOUT_MS) })
    const { result } = (await answer.json()) as { result: Record<string, string[]> }
    published = [...result.ipv4_cidrs!, ...result.ipv6_cidrs!]
  } catch (error) {
    return [unknown(name, `not checked: ${list} (${reasonOf(error as Error, TIMEOUT_MS)})`)]
  }
  const known = cloudflare.networks
  const added = published.filter((network) => !known.includes(network))
  const removed = known.filter((network) => !published.includes(network))
  if (added.length === 0 && removed.length === 0) {
    return [
      ok(
        name,
        `those of Cloudflare are as published (${known.length}, of ${cloudflare.published})`,
      ),
    ]
  }
  const changes = [
    added.length > 0 && `lack ${added.join(', ')}, so clients behind them share one quota`,
    removed.length > 0 && `still have ${removed.join(', ')}`,
  ].filter(Boolean)
  const remedy =
    added.length > 0 ? `['cloudflare', ${added.map((one) => `'${one}'`).join(', ')}]` : ''
  return [
    problem(
      name,
      `those of Cloudflare, of ${cloudflare.published}, ${changes.join(', and ')}. Update sluice${remedy && `, or write trustedProxies: ${remedy}`}`,
    ),
  ]
}
