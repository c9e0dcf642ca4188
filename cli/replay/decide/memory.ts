/** The fast path: the algorithms of the local store and of replies, with the counts in memory. */

import { canonical } from '../../../src/core/base/part.ts'
import { MAX_UNITS } from '../../../src/core/base/units.ts'
import type { Config, Policy } from '../../../src/core/config/parse.ts'
import {
  algorithms,
  type QuotaAlgorithm,
  type QuotaTerms,
  type State,
  withFloor,
} from '../../../src/core/connection/algorithms/index.ts'
import { unitsKept } from '../../../src/core/decide/settle.ts'
import type { Match } from '../../../src/core/program/match.ts'
import { flat } from '../read/text.ts'
import { Rows } from '../rows.ts'
import { type Engine, type Run, responseOf } from './engine.ts'
import type { Decided, Verdict } from './verdict.ts'
import { Answers, deniedVerdict } from './verdicts.ts'

/** Reports whether the memory decides as the script does. */
export const fitsMemory = ({ policies }: Pick<Config, 'policies'>): boolean =>
  policies.every(
    ({ algorithm, penalty, plan, countOnly }) =>
      algorithm !== 'concurrency' &&
      algorithm !== 'distinct' &&
      (!penalty || penalty.after === MAX_UNITS) && // with 'manual' only operators set bans
      // A refund at another rate than that of the charge shortens the life of a bucket.
      !(algorithm === 'token-bucket' && plan && countOnly),
  )

/** The verdict on a denied request, or its limits. */
type Rules = Verdict | Limits

interface Limits {
  limits: MemoryLimit[]
  /** The verdict if all of them have room. */
  admitted: Verdict
}

interface MemoryLimit {
  policy: Policy
  terms: QuotaTerms
  cost: number
  /** Names the state. */
  key: string
  /** The place of the state, as long as no sweep has come after this one. */
  at: number
  sweep: number
}

/** Decides in memory. States that have run out are removed, so that the memory depends on the clients within a window only. */
export function createMemoryEngine({ wholeSeconds }: { wholeSeconds: boolean }): Engine<Rules> {
  const states = new States()
  const noAnswers = new Answers()

  function decide(
    run: Run,
    { limits, admitted }: Limits,
    now: number,
    status: number | undefined,
  ): Verdict {
    if (limits.every((limit) => states.hasRoom(limit, run, now))) {
      for (const limit of limits) if (!isRefunded(limit, status)) states.charge(limit, run)
      return admitted
    }
    const outcomes: ReturnType<QuotaAlgorithm>[] = []
    let answers = noAnswers
    let isAdmitted = true
    for (const { policy, terms, cost, at } of limits) {
      const algorithm = algorithms[policy.algorithm as keyof typeof algorithms]
      const outcome = algorithm(now, terms, cost, states.get(at, run, now))
      if (!outcome.allowed && policy.mode === 'enforce') isAdmitted = false
      answers = answers.and(policy, outcome.allowed)
      outcomes.push(outcome)
    }
    for (let index = 0; isAdmitted && index < limits.length; index += 1) {
      const { state, resetAfterMs } = outcomes[index]!
      // A refund at once leaves the state as it was.
      if (!state || isRefunded(limits[index]!, status)) continue
      states.set(limits[index]!.at, run, state, now + resetAfterMs)
    }
    return answers.verdict
  }

  const withVerdict = (limits: MemoryLimit[]): Limits => ({
    limits,
    admitted: limits.reduce((answers, { policy }) => answers.and(policy, true), noAnswers).verdict,
  })

  return {
    rulesOf: ({ denied, policies }) =>
      denied ? deniedVerdict(denied) : withVerdict(policies.map(limitOf)),
    decide(asked) {
      if (asked.length > 0) states.sweep(asked[0]!.burst)
      return asked.map(({ line, spread, burst, rules }): Decided => {
        if (!('limits' in rules)) return { line, spread: rules, burst: rules }
        for (const limit of rules.limits) states.find(limit)
        const verdict = decide('spread', rules, spread, line.status)
        if (!wholeSeconds) return { line, spread: verdict, burst: verdict }
        return { line, spread: verdict, burst: decide('burst', rules, burst, line.status) }
      })
    },
  }
}

function limitOf({ terms: policy, partitionKey, cost, floor, period }: Match): MemoryLimit {
  const [label, value] = partitionKey[0]!
  const isOne = partitionKey.length === 1 && value !== undefined
  const name = isOne ? `${label.length}:${label}${value}` : canonical(partitionKey)
  const terms = withFloor(policy.algorithm, period ? { ...policy, period } : policy, floor)
  return { policy, terms, cost, key: flat(policy.tag + name), at: 0, sweep: -1 }
}

const isRefunded = (limit: MemoryLimit, status: number | undefined) =>
  limit.policy.countOnly &&
  status !== undefined &&
  unitsKept({ terms: limit.policy, cost: limit.cost }, responseOf(status)) === 0

/** How many states are not worth a sweep. */
const FEW = 50_000

/** The numbers of a state: its run-out, its time and up to two numbers. A row has a state for each run. */
const [END, TIME, FIRST, SECOND, STATE, ROW] = [0, 1, 2, 3, 4, 8]

/** The states of both runs. */
class States {
  readonly #rows = new Rows(ROW)
  /** The places of rows by keys. */
  readonly #places = new Map<string, number>()
  /** The numbers of sliding logs, by the place of their state. */
  readonly #logs = new Map<number, number[]>()
  #sweepAbove = FEW
  #sweep = 0

  /** Finds the row of a limit. It is empty at first. */
  find(limit: MemoryLimit): void {
    if (limit.sweep === this.#sweep) return
    let at = this.#places.get(limit.key)
    if (at === undefined) {
      at = this.#rows.add()
      this.#places.set(limit.key, at)
    }
    limit.at = at
    limit.sweep = this.#sweep
  }

  /** The state of a row, unless it has run out. */
  get(row: number, run: Run, now: number): State | undefined {
    const at = placeOf(row, run)
    const { cells } = this.#rows
    const end = cells[at + END]!
    if (now >= end) return undefined
    const numbers = this.#logs.get(at) ?? [cells[at + FIRST]!, cells[at + SECOND]!]
    return { time: cells[at + TIME]!, numbers, end }
  }

  set(row: number, run: Run, { time, numbers }: State, end: number): void {
    const at = placeOf(row, run)
    const { cells } = this.#rows
    cells[at + END] = end
    cells[at + TIME] = time
    if (numbers.length > 2 || this.#logs.has(at)) this.#logs.set(at, numbers)
    cells[at + FIRST] = numbers[0]!
    cells[at + SECOND] = numbers[1]!
  }

  /**
   * Reports whether a sliding window has room even if all units of the window before count. Its algorithm admits the cost then, whatever
   * part of the window is over. This is so for most lines, and takes much less time than the algorithm.
   */
  hasRoom({ policy, terms, cost, at: row }: MemoryLimit, run: Run, now: number): boolean {
    if (policy.algorithm !== 'sliding-window') return false
    const at = placeOf(row, run)
    const { cells } = this.#rows
    const start = Math.floor(now / terms.windowMs) * terms.windowMs
    const age = now < cells[at + END]! ? start - cells[at + TIME]! : Number.POSITIVE_INFINITY
    if (age < 0) return false
    if (age > 0) {
      cells[at + SECOND] = age === terms.windowMs ? cells[at + FIRST]! : 0
      cells[at + FIRST] = 0
      cells[at + TIME] = start
    }
    return cells[at + FIRST]! + cells[at + SECOND]! + cost <= terms.limit
  }

  /** Charges a sliding window that has room. */
  charge({ terms, cost, at: row }: MemoryLimit, run: Run): void {
    const at = placeOf(row, run)
    const { cells } = this.#rows
    cells[at + FIRST]! += cost
    if (cost > 0) cells[at + END] = cells[at + TIME]! + 2 * terms.windowMs
  }

  /**
   * Removes the states that have run out, if there are twice as many as after the last time.
   * @param now no later time is before this one
   */
  sweep(now: number): void {
    if (this.#places.size < this.#sweepAbove) return
    const { cells } = this.#rows
    for (const [key, row] of this.#places) {
      const [spread, burst] = [placeOf(row, 'spread'), placeOf(row, 'burst')]
      if (Math.max(cells[spread + END]!, cells[burst + END]!) > now) continue
      this.#places.delete(key)
      this.#rows.remove(row)
      this.#logs.delete(spread)
      this.#logs.delete(burst)
    }
    this.#sweep += 1
    this.#sweepAbove = Math.max(FEW, 2 * this.#places.size)
  }
}

const placeOf = (row: number, run: Run) => row + (run === 'burst' ? STATE : 0)
