import type { QuotaState } from '../../base/decision.ts'
import type { State } from './algorithms/index.ts'

const MAX_ENTRIES = 10_000
/** The bound on the numbers in all states (8 bytes each): a sliding log has one for every unit, and an isolate only 128 MB. */
const MAX_NUMBERS = 1_000_000
/** Entries that are compared when one is evicted. */
const SAMPLES = 8

/** The store's last reply to a limit. */
export interface LastReply {
  state: QuotaState
  cost: number
  /** The terms of its numbers: a key may be asked for under several plans, and a live policy may change. */
  limit: number
  burst: number
  /** The store's time of the decision, ms since the epoch. */
  decidedAt: number
  /** By the isolate's clock, ms since the epoch. */
  receivedAt: number
}

/** What is known of one limit. */
export interface LocalEntry {
  key: string
  /** Its place in the list that is sampled. */
  index: number
  /** Set by `setState` only. */
  state: State | undefined
  /** When `state` means nothing any more, ms since the epoch. */
  runOut: number
  /** Whether `state` has units that were charged here. */
  isOwn: boolean
  /** Units charged here that the store does not know of. */
  unpaid: number
  reply: LastReply | undefined
  /** Whether `state` includes the reply. */
  isMerged: boolean
  /** When nothing that is known here matters any more, ms since the epoch. */
  until: number
  /** The part of the quota that was left at last, from 0 to 1. */
  left: number
}

/**
 * A bounded map of limits. It evicts one of eight entries chosen at random: one that is over, or else the one with most of its quota
 * left, so that a flood of fresh keys does not evict an exhausted one.
 */
export class LocalEntries {
  readonly #byKey = new Map<string, LocalEntry>()
  readonly #all: LocalEntry[] = []
  readonly #random: () => number
  #numbers = 0

  constructor(random: () => number) {
    this.#random = random
  }

  get(key: string): LocalEntry | undefined {
    return this.#byKey.get(key)
  }

  getOrAdd(key: string, now: number): LocalEntry {
    const known = this.#byKey.get(key)
    if (known) return known
    while (this.#all.length >= MAX_ENTRIES) this.remove(this.#worst(now))
    const entry: LocalEntry = {
      key,
      index: this.#all.length,
      state: undefined,
      runOut: 0,
      isOwn: false,
      unpaid: 0,
      reply: undefined,
      isMerged: true,
      until: 0,
      left: 1,
    }
    this.#byKey.set(key, entry)
    this.#all.push(entry)
    return entry
  }

  setState(entry: LocalEntry, state: State | undefined, runOut: number): void {
    this.#numbers += (state?.numbers.length ?? 0) - (entry.state?.numbers.length ?? 0)
    entry.state = state
    entry.runOut = runOut
  }

  remove(entry: LocalEntry): void {
    this.setState(entry, undefined, 0)
    this.#byKey.delete(entry.key)
    const last = this.#all.pop()!
    if (last === entry) return
    this.#all[entry.index] = last
    last.index = entry.index
  }

  /** Whether the states have more numbers than they may. */
  get isFull(): boolean {
    return this.#numbers > MAX_NUMBERS
  }

  trim(now: number): void {
    while (this.isFull) this.remove(this.#worst(now))
  }

  #worst(now: number): LocalEntry {
    const worthOf = ({ until, left }: LocalEntry) => (until <= now ? 2 : left)
    const sample = () => this.#all[Math.floor(this.#random() * this.#all.length)]!
    let chosen = sample()
    for (let n = 1; n < SAMPLES; n++) {
      const other = sample()
      if (worthOf(other) > worthOf(chosen)) chosen = other
    }
    return chosen
  }
}
