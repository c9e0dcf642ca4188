import type { PolicyMode } from '../../../src/core/base/decision.ts'
import type { Decided, Verdict } from '../decide/verdict.ts'
import type { Refusals } from './clients.ts'
import { Counter } from './counter.ts'
import { countOf, eachName, pairOf } from './pair.ts'
import type { Slots } from './slots.ts'
import type { PolicyCounts } from './types.ts'

type Kind = PolicyCounts['kind']

/** The counts of one policy, or of another rule that refuses requests. */
export class PolicyCounter extends Counter {
  readonly name: string
  readonly #kind: Kind
  readonly #mode: PolicyMode

  constructor(slots: Slots, name: string, kind: Kind, mode: PolicyMode) {
    super(slots)
    this.name = name
    this.#kind = kind
    this.#mode = mode
  }

  override report(): PolicyCounts {
    return { name: this.name, kind: this.#kind, mode: this.#mode, ...super.report() }
  }
}

/** The counts by policy. */
export class Policies {
  readonly #slots: Slots
  readonly #counters: Record<Verdict['by'], Map<string, PolicyCounter>>
  /** The counters of the last verdict. Most verdicts are one object. */
  #last: { names: readonly string[]; counters: PolicyCounter[] } = { names: [], counters: [] }

  constructor(slots: Slots, policies: readonly { name: string; mode: PolicyMode }[]) {
    this.#slots = slots
    const counters = policies.map(
      ({ name, mode }) => [name, new PolicyCounter(slots, name, 'policy', mode)] as const,
    )
    this.#counters = { policies: new Map(counters), deny: new Map(), 'missing-key': new Map() }
  }

  count({ spread }: Decided, slot: number): void {
    if (spread.policies !== this.#last.names) {
      const counters = spread.policies.map((name) => this.#of('policies', name))
      this.#last = { names: spread.policies, counters }
    }
    for (const counter of this.#last.counters) counter.count(slot)
    if (spread.deniedBy !== undefined) this.#of(spread.by, spread.deniedBy).count(slot)
  }

  refuse(refusals: Refusals, { spread, burst }: Decided, time: number, slot: number): void {
    const refuse = (by: Verdict['by']) => (name: string, inSpread: boolean, inBurst: boolean) => {
      const counter = this.#of(by, name)
      counter.refuse(time, slot, inSpread, inBurst)
      countOf(pairOf(refusals.policies, counter), counter.clients, inSpread, inBurst)
    }
    const { by, deniedBy } = spread
    if (deniedBy !== undefined) refuse(by)(deniedBy, true, true)
    eachName(spread.refusedBy, burst.refusedBy, refuse('policies'))
    eachName(spread.shadowRefusedBy, burst.shadowRefusedBy, refuse('policies'))
  }

  #of(by: Verdict['by'], name: string): PolicyCounter {
    let counter = this.#counters[by].get(name)
    if (!counter) {
      const kind = by === 'policies' ? 'policy' : by
      counter = new PolicyCounter(this.#slots, name, kind, 'enforce')
      this.#counters[by].set(name, counter)
    }
    return counter
  }

  list(): PolicyCounter[] {
    return Object.values(this.#counters).flatMap((counters) => [...counters.values()])
  }
}
