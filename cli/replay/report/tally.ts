/** Counts what a configuration does to a log, in constant memory. */
import type { PolicyMode } from '../../../src/core/base/decision.ts'
import type { Decided, NotReplayed, Verdict } from '../decide/verdict.ts'
import { type Client, Clients, Refusals } from './clients.ts'
import { Differences } from './comparison.ts'
import { Counter } from './counter.ts'
import { offendersOf } from './offenders.ts'
import { countOf, Pair } from './pair.ts'
import { Policies } from './policies.ts'
import { Slots } from './slots.ts'
import type { ExpectationReport, ReplayReport, Source, Suggestion } from './types.ts'

export interface TallyOptions {
  /** The policies that are replayed, such as `config.policies`. */
  policies: readonly { name: string; mode: PolicyMode }[]
  /** How many clients are remembered. Defaults to 200,000. */
  maxClients?: number
  /** For how many of them paths and user agents are remembered. Defaults to 10,000. */
  maxDetails?: number
}

/** A configuration and what replayed it, as a `Replayer` has it. */
export interface Replayed {
  /** The name of the configuration file. */
  config: string
  engine: 'memory' | 'redis'
  notReplayed: NotReplayed[]
}

/** The parts of the report that the tally does not know. */
export interface ReportContext extends Replayed {
  source: Source
  notes: string[]
  /** The other configuration. The report has a comparison if it is present. */
  against?: Replayed
  expectations?: ExpectationReport[]
  suggestion?: Suggestion
}

export interface Tally {
  /**
   * Counts requests in the order of their times.
   * @param against the decisions of the other configuration about the same requests
   * @throws Error if their numbers differ
   */
  add(decided: readonly Decided[], against?: readonly Decided[]): void
  /** The report of the requests so far. May be called several times. */
  result(context: ReportContext): ReplayReport
}

export const createTally = (options: TallyOptions): Tally => new LogTally(options)

class LogTally implements Tally {
  readonly #slots = new Slots()
  readonly #total = new Counter(this.#slots)
  readonly #wouldRefuse = new Pair()
  readonly #answered = {
    429: { requests: 0, refused: new Pair() },
    403: { requests: 0, refused: new Pair() },
  }
  readonly #policies: Policies
  readonly #clients: Clients
  readonly #differences = new Differences()
  #from: number | null = null
  #to = 0

  constructor({ policies, maxClients = 200_000, maxDetails = 10_000 }: TallyOptions) {
    this.#policies = new Policies(this.#slots, policies)
    this.#clients = new Clients({ clients: maxClients, details: maxDetails })
  }

  add(decided: readonly Decided[], against?: readonly Decided[]): void {
    if (against && against.length !== decided.length) {
      throw new Error('The two configurations decided different requests.')
    }
    for (let index = 0; index < decided.length; index += 1) {
      const client = this.#count(decided[index]!)
      if (against) this.#differences.compare(client, decided[index]!, against[index]!)
    }
  }

  #count(decided: Decided): Client {
    const { line, spread, burst } = decided
    this.#from ??= line.time
    this.#to = Math.max(this.#to, line.time)
    const time = this.#to
    const slot = this.#slots.at(time)
    const client = this.#clients.see(line, time)
    this.#total.count(slot)
    this.#policies.count(decided, slot)
    if (line.status === 429 || line.status === 403) {
      const answered = this.#answered[line.status]
      answered.requests += 1
      answered.refused.add(!spread.allowed, !burst.allowed)
    }
    if (isTouched(spread) || (burst !== spread && isTouched(burst))) {
      this.#refuse(client, decided, time, slot)
    }
    return client
  }

  #refuse(client: Client, decided: Decided, time: number, slot: number): void {
    const { spread, burst } = decided
    client.refusals ??= new Refusals()
    this.#policies.refuse(client.refusals, decided, time, slot)
    if (!spread.allowed || !burst.allowed) {
      this.#total.refuse(time, slot, !spread.allowed, !burst.allowed)
      countOf(client.refusals.refused, this.#total.clients, !spread.allowed, !burst.allowed)
    }
    const inSpread = spread.allowed && spread.shadowRefusedBy.length > 0
    const inBurst = burst.allowed && burst.shadowRefusedBy.length > 0
    client.refusals.wouldRefuse.add(inSpread, inBurst)
    this.#wouldRefuse.add(inSpread, inBurst)
    this.#clients.detail(client, decided.line)
  }

  result({
    source,
    notes,
    against,
    expectations,
    suggestion,
    ...replayed
  }: ReportContext): ReplayReport {
    const left = new Set(replayed.notReplayed.map(({ policy }) => policy))
    const clients = this.#clients.list()
    const answered = ({ requests, refused }: { requests: number; refused: Pair }) => ({
      requests,
      refused: refused.bounds(),
    })
    return {
      version: 1,
      source,
      ...replayed,
      notes,
      from: this.#from,
      to: this.#from === null ? null : this.#to,
      total: this.#total.report(),
      wouldRefuse: this.#wouldRefuse.bounds(),
      answered: { 429: answered(this.#answered[429]), 403: answered(this.#answered[403]) },
      policies: this.#policies
        .list()
        .filter(({ name, requests }) => requests > 0 || !left.has(name))
        .map((policy) => policy.report()),
      slotMs: this.#slots.length,
      slotsFrom: this.#slots.from,
      clients: { count: this.#clients.total, exact: this.#clients.exact },
      offenders: offendersOf(clients),
      ...(against && { against: { ...against, ...this.#differences.report(clients) } }),
      ...(expectations && { expectations }),
      ...(suggestion && { suggestion }),
    }
  }
}

const isTouched = ({ allowed, shadowRefusedBy }: Verdict) => !allowed || shadowRefusedBy.length > 0
