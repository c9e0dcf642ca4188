import { network, parseAddress } from '../../../src/core/base/ip.ts'
import { cached } from '../cache.ts'
import type { LogLine } from '../line.ts'
import { flat } from '../read/text.ts'
import { Rows } from '../rows.ts'
import { BySender } from '../sender.ts'
import { Frequent, Texts } from './frequent.ts'
import { Pair } from './pair.ts'

const MINUTE_MS = 60_000
/** Above all times, so that a client with refusals is worth more than any other one. */
const REFUSED = 1e15

/** What the configurations refused of one client. */
export class Refusals {
  readonly refused = new Pair()
  readonly wouldRefuse = new Pair()
  /** By policy. */
  readonly policies = new Map<{ readonly name: string }, Pair>()
  /** Refused by one of two configurations. */
  readonly added = new Pair()
  readonly removed = new Pair()

  get count(): number {
    return this.refused.high + this.wouldRefuse.high + this.added.high + this.removed.high
  }
}

export const noDetails = () => ({ userAgents: new Frequent(), paths: new Frequent() })
type Details = ReturnType<typeof noDetails>

/** The numbers of a client. `STATUSES` is the first of six: by the first digit, and at first the requests without a status. */
const [REQUESTS, TO, MINUTE, IN_MINUTE, WORST_MINUTE, IN_WORST, STATUSES, ROW] = [
  0, 1, 2, 3, 4, 5, 6, 12,
]

export class Client {
  readonly name: string
  readonly country: string | undefined
  readonly asn: string | undefined
  readonly from: number
  refusals: Refusals | undefined
  details: Details | undefined
  isForgotten = false
  readonly #rows: Rows
  readonly #at: number

  constructor(name: string, { country, asn }: LogLine, time: number, rows: Rows) {
    this.name = name
    this.country = country && flat(country)
    this.asn = asn && flat(asn)
    this.from = time
    this.refusals = undefined
    this.details = undefined
    this.#rows = rows
    this.#at = rows.add()
  }

  see(line: LogLine, time: number): void {
    const [{ cells }, at] = [this.#rows, this.#at]
    cells[at + REQUESTS]! += 1
    cells[at + TO] = time
    const digit = line.status === undefined ? 0 : Math.trunc(line.status / 100)
    cells[at + STATUSES + (digit <= 5 ? digit : 0)]! += 1
    const minute = Math.floor(time / MINUTE_MS)
    if (minute !== cells[at + MINUTE]) {
      cells[at + MINUTE] = minute
      cells[at + IN_MINUTE] = 0
    }
    cells[at + IN_MINUTE]! += 1
    if (cells[at + IN_MINUTE]! > cells[at + IN_WORST]!) {
      cells[at + IN_WORST] = cells[at + IN_MINUTE]!
      cells[at + WORST_MINUTE] = minute
    }
  }

  get requests(): number {
    return this.#rows.cells[this.#at + REQUESTS]!
  }

  /** The time of its last request. */
  get to(): number {
    return this.#rows.cells[this.#at + TO]!
  }

  /** The most requests in a minute, and the first minute with so many. */
  get worstMinute(): { time: number; requests: number } {
    const [{ cells }, at] = [this.#rows, this.#at]
    return { time: cells[at + WORST_MINUTE]! * MINUTE_MS, requests: cells[at + IN_WORST]! }
  }

  /** By the first digit; the first number counts requests without a status. */
  get statuses(): number[] {
    return [...this.#rows.cells.subarray(this.#at + STATUSES, this.#at + ROW)]
  }

  /** Clients with the lowest worth are forgotten first: those without refusals, by their last request. */
  get worth(): number {
    return this.refusals ? REFUSED + this.refusals.count : this.to
  }

  forget(): void {
    this.isForgotten = true
    this.details = undefined
    this.#rows.remove(this.#at)
  }
}

/** The clients of a log, in bounded memory. */
export class Clients {
  readonly #byName = new Map<string, Client>()
  readonly #bySender = new BySender<Client>()
  readonly #rows = new Rows(ROW)
  #detailed: Client[] = []
  /** After details were dropped, only a client with more refusals than this gets some. */
  #detailedFrom = 0
  readonly #texts = new Texts()
  readonly #pathOf = cached((target) => this.#texts.share(target.split('?', 1)[0]!))
  readonly #most: { clients: number; details: number }
  /** The number of clients, forgotten ones included. */
  total = 0

  constructor(most: { clients: number; details: number }) {
    this.#most = most
  }

  /** True if no client was forgotten. */
  get exact(): boolean {
    return this.total === this.#byName.size
  }

  /** Counts a request, and returns its client. */
  see(line: LogLine, time: number): Client {
    let client = this.#bySender.get(line)
    if (!client || client.isForgotten) {
      client = this.#find(line, time)
      this.#bySender.set(line, client)
    }
    client.see(line, time)
    if (client.details && isLookedAt(client)) this.#look(line, client.details)
    return client
  }

  #look({ target, userAgent }: LogLine, { userAgents, paths }: Details): void {
    paths.count(this.#pathOf(target))
    if (userAgent !== undefined) userAgents.add(userAgent, this.#texts)
  }

  /** Looks at the requests of a client from this one on, which was refused. */
  detail(client: Client, line: LogLine): void {
    if (client.details || client.refusals!.count <= this.#detailedFrom) return
    this.#giveDetails(client)
    this.#look(line, client.details!)
  }

  #find(line: LogLine, time: number): Client {
    const address = parseAddress(line.ip ?? '')
    const name = address ? network(address, 32, 64) : 'unknown'
    return this.#byName.get(name) ?? this.#create(name, line, time)
  }

  #create(name: string, line: LogLine, time: number): Client {
    if (this.#byName.size >= this.#most.clients) {
      for (const one of leastWorth(this.list())) {
        one.forget()
        this.#byName.delete(one.name)
      }
    }
    const client = new Client(flat(name), line, time, this.#rows)
    if (this.#detailed.length < this.#most.details) this.#giveDetails(client)
    this.#byName.set(client.name, client)
    this.total += 1
    return client
  }

  #giveDetails(client: Client): void {
    if (this.#detailed.length >= this.#most.details) {
      const known = this.#detailed.filter((one) => one.details)
      for (const one of leastWorth(known)) {
        one.details = undefined
        this.#detailedFrom = Math.max(this.#detailedFrom, one.refusals?.count ?? 0)
      }
      this.#detailed = known.filter((one) => one.details)
    }
    this.#detailed.push(client)
    client.details = noDetails()
  }

  /** All clients that are remembered. */
  list(): Client[] {
    return [...this.#byName.values()]
  }
}

/** All of the first requests of a client, and then every eighth, because texts take most of the time. */
const isLookedAt = ({ requests }: Client) => requests <= 500 || requests % 8 === 0

/** The half of some clients with the lowest worth; at least one. */
function leastWorth(clients: readonly Client[]): Client[] {
  const half = Math.ceil(clients.length / 2)
  const worths = Float64Array.from(clients, ({ worth }) => worth).sort()
  return clients.filter(({ worth }) => worth <= worths[half - 1]!).slice(0, half)
}
