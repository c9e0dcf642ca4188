import type { QuotaState } from '../base/decision.ts'
import type { State } from '../connection/algorithms/index.ts'

const MAX_ENTRIES = 10_000
/** The maximum of numbers in all states, 8 bytes each. A sliding log has one number for every unit; an isolate has 128 MB. */
const MAX_NUMBERS = 1_000_000
/** The numbers that need as much memory as a value of `distinct` with its time. */
const PER_VALUE = 8
/** How many random entries an eviction compares. */
const SAMPLES = 8

/** The store's last reply to a limit. */
export interface LastReply {
  state: QuotaState
  cost: number
  floor: number
  /** A hash of the values, which need too much memory. Only for `distinct`. */
  values: number | undefined
  /** The terms of the reply. They may differ from the current ones: one key may have several plans, and a live policy may change. */
  limit: number
  burst: number
  /** The time of the decision by the store's clock, ms since the epoch. */
  decidedAt: number
  /** When the reply was received, by the isolate's clock, ms since the epoch. */
  receivedAt: number
}

/** Everything that the isolate knows of one limit. */
export interface LocalEntry {
  key: string
  /** Its index in the array for random samples. */
  index: number
  /** Change it with `setState` only, which counts its numbers. */
  state: State | undefined
  /** When `state` expires, ms since the epoch. */
  runOut: number
  /** True if `state` includes units that this isolate charged. */
  isOwn: boolean
  /** Units charged here that the store has not charged. */
  localUnits: number
  reply: LastReply | undefined
  /** True if `state` already includes `reply`. */
  isMerged: boolean
  /** When the whole entry expires, ms since the epoch. */
  until: number
  /** The fraction of the quota that remained at the last change, from 0 to 1. */
  left: number
}

const sizeOf = ({ numbers, values }: State): number => numbers.length * (values ? PER_VALUE : 1)

/**
 * A bounded map of limits. An eviction compares eight random entries, and removes an expired one, or else the one with the most of its quota
 * remaining: a flood of new keys does not evict exhausted limits.
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
    const existing = this.#byKey.get(key)
    if (existing) return existing
    while (this.#all.length >= MAX_ENTRIES) this.remove(this.#leastUseful(now))
    const entry: LocalEntry = {
      key,
      index: this.#all.length,
      state: undefined,
      runOut: 0,
      isOwn: false,
      localUnits: 0,
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
    if (entry.state) this.#numbers -= sizeOf(entry.state)
    if (state) this.#numbers += sizeOf(state)
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

  get isFull(): boolean {
    return this.#numbers > MAX_NUMBERS
  }

  trim(now: number): void {
    while (this.isFull) this.remove(this.#leastUseful(now))
  }

  #leastUseful(now: number): LocalEntry {
    const score = ({ until, left }: LocalEntry) => (until <= now ? 2 : left)
    const sample = () => this.#all[Math.floor(this.#random() * this.#all.length)]!
    let chosen = sample()
    for (let n = 1; n < SAMPLES; n++) {
      const other = sample()
      if (score(other) > score(chosen)) chosen = other
    }
    return chosen
  }
}
