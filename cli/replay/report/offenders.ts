import { network, parseAddress } from '../../../src/core/base/ip.ts'
import { type Client, noDetails } from './clients.ts'
import { byHighest, Pair } from './pair.ts'
import type { ClientReport } from './types.ts'

const MOST = 20
const TOP_TEXTS = 5
const NO_PAIR = new Pair()

const refused = ({ refusals }: Client) => refusals?.refused ?? NO_PAIR
const wouldRefuse = ({ refusals }: Client) => refusals?.wouldRefuse ?? NO_PAIR

/** The clients with the most refusals, then those with the most refusals of shadow policies. */
export function offendersOf(clients: readonly Client[]): ClientReport[] {
  const some = clients.filter((one) => refused(one).high + wouldRefuse(one).high > 0)
  return byHighest(byHighest(some, wouldRefuse), refused).slice(0, MOST).map(reportOf)
}

function reportOf(client: Client): ClientReport {
  const { name, country = null, asn = null, requests, from, to } = client
  const { userAgents, paths } = client.details ?? noDetails()
  const address = parseAddress(name.replace(/\/64$/, ''))
  return {
    client: name,
    network: address ? network(address, 24, 48) : null,
    country,
    asn,
    requests,
    refused: refused(client).bounds(),
    wouldRefuse: wouldRefuse(client).bounds(),
    policies: byHighest(client.refusals!.policies, ([, pair]) => pair).map(([policy, pair]) => ({
      name: policy.name,
      refused: pair.bounds(),
    })),
    statuses: Object.fromEntries(
      client.statuses.flatMap((count, digit) =>
        count > 0 ? [[digit === 0 ? 'none' : `${digit}xx`, count]] : [],
      ),
    ),
    from,
    to,
    worstMinute: client.worstMinute,
    userAgents: userAgents.report(TOP_TEXTS),
    paths: paths.report(TOP_TEXTS),
  }
}
