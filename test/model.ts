/**
 * The oracle: ALGORITHMS.md and lua/README.md in the plainest words, sharing nothing with the Lua.
 * An algorithm says only whether a cost fits at an instant; every number of the reply is then found
 * by its definition (the largest cost that fits, the least wait after which it does), by search.
 * Here: records, and requests decided as a whole.
 */
import type { LimitRow, RowState, StoreReply, StoreRequest } from '../src/store/store.ts'
import { greatest } from './model/algorithms.ts'
import { Limit, type State } from './model/limit.ts'

export type AlgorithmName = LimitRow['policy']['algorithm']
/** What the script is told of a policy. */
export type ModelPolicy = Pick<
  LimitRow['policy'],
  'tag' | 'algorithm' | 'limit' | 'windowMs' | 'burst' | 'align'
>
export type ModelRow = Omit<LimitRow, 'policy'> & { policy: ModelPolicy }
export type ModelRequest = Omit<StoreRequest, 'rows'> & { rows: ModelRow[] }

/** One Redis key: the states that it holds by tag, and the PX of its last write. */
export interface ModelKey {
  states: Map<string, State>
  px: number
}

/** Redis expires by its own clock, so that records written at a `now` of ours live a minute longer. */
const grace = 60_000n

export class Model {
  readonly keys = new Map<string, ModelKey>()

  decide(requests: ModelRequest[], now: number): StoreReply {
    const told: RowState[][] = []
    requests.forEach((request, index) => {
      const before = requests.slice(0, index).findLastIndex(({ mode }) => mode !== 'shadow')
      const took =
        requests[before]?.mode === 'take' && told[before]!.every(({ allowed }) => allowed)
      const shadow = before === -1 || took ? 'take' : 'look'
      const mode = request.mode === 'shadow' ? shadow : request.mode
      told.push(this.#request({ ...request, mode }, BigInt(now)))
    })
    return { now, requests: told }
  }

  #request({ mode, rows, receipt }: ModelRequest, now: bigint): RowState[] {
    const limits = rows.map(({ policy }) => new Limit(policy))
    const costs = rows.map(({ cost }) => BigInt(cost))
    const fits = rows.map((row, i) => limits[i]!.fits(this.#state(row), costs[i]!, now))
    // Judged before anything is charged: the waits of a refused row are those of the uncharged state.
    const waits = rows.map((row, i) => {
      if (mode === 'give-back' || fits[i]) return 0
      if (costs[i]! > limits[i]!.capacity) return null
      return Number(limits[i]!.wait(this.#state(row), costs[i]!, now))
    })
    rows.forEach((row, i) => {
      const before = this.#state(row)
      if (mode === 'look' || costs[i] === 0n) return
      if (mode === 'take') {
        if (fits.every(Boolean)) this.#write(row, limits[i]!.take(before, costs[i]!, now), now)
        return
      }
      const since = receipt === undefined ? undefined : BigInt(receipt)
      const after = limits[i]!.giveBack(before, costs[i]!, now, since)
      if (after !== before) this.#write(row, after, now)
    })
    return rows.map((row, i) => ({
      allowed: mode === 'give-back' || fits[i]!,
      retryAfterMs: waits[i]!,
      ...limits[i]!.report(this.#state(row), now),
    }))
  }

  #state(row: ModelRow): State | undefined {
    return this.keys.get(keyOf(row))?.states.get(row.policy.tag)
  }

  /** Stores or removes one state, drops the others that have run out, deletes an empty key. */
  #write(row: ModelRow, state: State | undefined, now: bigint) {
    const states = new Map(this.keys.get(keyOf(row))?.states)
    if (state) states.set(row.policy.tag, state)
    else states.delete(row.policy.tag)
    for (const [tag, { runOut }] of states) if (runOut <= now) states.delete(tag)
    if (states.size === 0) {
      this.keys.delete(keyOf(row))
      return
    }
    const last = [...states.values()].map(({ runOut }) => runOut).reduce(greatest)
    this.keys.set(keyOf(row), { states, px: Number(last - now + grace) })
  }
}

/** The log has a key of its own; all other states of a subject share one. */
export function keyOf({ subject, policy }: ModelRow): string {
  const record = `sluice:1:{${subject}}`
  return policy.algorithm === 'sliding-log' ? `${record}:log:${policy.tag}` : record
}

/** A state as the record spells it: `tag:time:life:numbers`. */
export function spell(tag: string, { time, runOut, numbers }: State): string {
  return [tag, time, runOut - time, ...numbers].join(':')
}
