import type { Decided, Verdict } from '../decide/verdict.ts'
import { type Client, Refusals } from './clients.ts'
import { byHighest, countOf, eachName, Pair, pairOf } from './pair.ts'
import type { Change, Comparison } from './types.ts'

const TOP = 20

/** Counts the requests that two configurations decide differently. */
export class Differences {
  readonly #both = new Pair()
  readonly #added = new Changes((refusals) => refusals.added)
  readonly #removed = new Changes((refusals) => refusals.removed)

  compare(client: Client, decided: Decided, against: Decided): void {
    const { spread, burst } = decided
    if (spread.allowed && burst.allowed && against.spread.allowed && against.burst.allowed) return
    this.#both.add(
      !spread.allowed && !against.spread.allowed,
      !burst.allowed && !against.burst.allowed,
    )
    this.#added.count(client, decided, against)
    this.#removed.count(client, against, decided)
  }

  report(clients: readonly Client[]): Pick<Comparison, 'both' | 'added' | 'removed'> {
    return {
      both: this.#both.bounds(),
      added: this.#added.report(clients),
      removed: this.#removed.report(clients),
    }
  }
}

/** The rules that refuse a request. */
const rulesOf = ({ deniedBy, refusedBy }: Verdict) =>
  deniedBy === undefined ? refusedBy : [deniedBy]

/** Requests that one configuration refuses and the other one admits. */
class Changes {
  readonly #requests = new Pair()
  readonly #clients = new Pair()
  readonly #policies = new Map<string, Pair>()
  readonly #of: (refusals: Refusals) => Pair

  constructor(of: (refusals: Refusals) => Pair) {
    this.#of = of
  }

  count(client: Client, refusing: Decided, admitting: Decided): void {
    const inSpread = !refusing.spread.allowed && admitting.spread.allowed
    const inBurst = !refusing.burst.allowed && admitting.burst.allowed
    if (!inSpread && !inBurst) return
    this.#requests.add(inSpread, inBurst)
    client.refusals ??= new Refusals()
    countOf(this.#of(client.refusals), this.#clients, inSpread, inBurst)
    eachName(
      inSpread ? rulesOf(refusing.spread) : [],
      inBurst ? rulesOf(refusing.burst) : [],
      (name, bySpread, byBurst) => pairOf(this.#policies, name).add(bySpread, byBurst),
    )
  }

  report(clients: readonly Client[]): Change {
    const changed = clients.flatMap(({ name, refusals }) => {
      const pair = refusals && this.#of(refusals)
      return pair && pair.high > 0 ? [{ name, pair }] : []
    })
    return {
      requests: this.#requests.bounds(),
      clients: this.#clients.bounds(),
      policies: byHighest(this.#policies, ([, pair]) => pair).map(([name, pair]) => ({
        name,
        requests: pair.bounds(),
      })),
      top: byHighest(changed, ({ pair }) => pair)
        .slice(0, TOP)
        .map(({ name, pair }) => ({ client: name, requests: pair.bounds() })),
    }
  }
}
