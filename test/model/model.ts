/**
 * The oracle implements docs/explanation/algorithms.md and lua/README.md as directly as possible. It shares no code with
 * the Lua. An algorithm only decides if a cost fits at a given time. A search finds every number of the reply by its
 * definition: the largest cost that fits, or the shortest wait after which it fits.
 * This file implements whole requests and records.
 */
import type { StoreReply, StoreState } from '../../src/core/connection/store.ts'
import { greatest } from './algorithms.ts'
import { LimitModel, type State } from './limit.ts'
import { banned, type LimitStatus, refused, restOf, termsOf } from './penalty.ts'
import { Slots } from './slots.ts'
import type { ModelLimit, ModelRequest } from './types.ts'
import { Values } from './values.ts'

export type { AlgorithmName, ModelLimit, ModelPolicy, ModelRequest } from './types.ts'

/** One Redis key: its states by tag, and the PX of its last write, or `undefined` if that write kept the TTL. */
export interface ModelKey {
  states: Map<string, State>
  px: number | undefined
}

/** Extra TTL in ms. Redis expires keys by its own clock, so keys live a minute longer if the caller sends `now`. */
const grace = 60_000n

export class Model {
  readonly keys = new Map<string, ModelKey>()

  decide(requests: ModelRequest[], now: number): StoreReply {
    const states: StoreState[][] = []
    requests.forEach((request, index) => {
      const before = requests.slice(0, index).findLastIndex(({ mode }) => mode !== 'follow')
      const took =
        requests[before]?.mode === 'take' && states[before]!.every(({ allowed }) => allowed)
      const followed = before === -1 || took ? 'take' : 'peek'
      const mode = request.mode === 'follow' ? followed : request.mode
      states.push(this.#request({ ...request, mode }, BigInt(now)))
    })
    return { decidedAt: now, states }
  }

  #request(request: ModelRequest, now: bigint): StoreState[] {
    const { limits: sent, decidedAt } = request
    const operates = ['reset', 'ban', 'unban', 'override', 'restore'].includes(request.mode)
    if (operates) for (const row of sent) this.#operate(request, row, now)
    const mode = operates ? 'peek' : request.mode
    const overrides = sent.map((row) => this.#override(row, now))
    const limits = sent.map((row, i) => resized(row, overrides[i]))
    const models = limits.map((row) =>
      row.terms.algorithm === 'concurrency'
        ? new Slots(row)
        : row.terms.algorithm === 'distinct'
          ? new Values(row)
          : new LimitModel(row),
    )
    const costs = limits.map(({ cost }) => BigInt(cost))
    const fits = limits.map((row, i) => models[i]!.fits(this.#state(row), costs[i]!, now))
    const bans = limits.map((row) => (settles(mode) ? 0n : this.#ban(row, now)))
    const admitted = fits.every(Boolean) && bans.every((rest) => rest === 0n)
    // Computed before any charge, because a refused row reports the waits of its uncharged state.
    const waits = limits.map((row, i) => {
      if (settles(mode) || fits[i]) return 0
      if (costs[i]! + models[i]!.floor > models[i]!.capacity) return null
      return Number(models[i]!.wait(this.#state(row), costs[i]!, now))
    })
    limits.forEach((row, i) => {
      const before = this.#state(row)
      if (mode === 'peek' || costs[i] === 0n) return
      if (mode === 'refund') {
        const since = decidedAt === undefined ? undefined : BigInt(decidedAt)
        const after = models[i]!.refund(before, costs[i]!, now, since)
        if (after !== before) this.#write(mode, row, after, now)
      } else if (mode === 'debt') {
        const model = models[i]!
        if (!(model instanceof LimitModel)) throw new Error('Slots and values have no debt.')
        const after = model.owe(before, costs[i]!, now)
        if (after !== before) this.#write('take', row, after, now)
      } else if (admitted) {
        const after = models[i]!.take(before, costs[i]!, now)
        if (after !== before) this.#write('take', row, after, now)
      }
    })
    if (mode === 'take' && !admitted) {
      limits.forEach((row, i) => {
        // A refusal during a ban does not count.
        if (row.penalty && !fits[i] && bans[i] === 0n) bans[i] = this.#punish(row, now)
      })
    }
    return limits.map((row, i) => {
      const ban = Number(bans[i])
      return {
        ...models[i]!.report(this.#state(row), now),
        allowed: settles(mode) || (fits[i]! && ban === 0),
        retryAfterMs: waits[i] === null ? null : Math.max(waits[i]!, ban),
        ...(ban > 0 && { bannedForMs: ban }),
        ...(overrides[i] && {
          limit: Number(overrides[i].numbers[0]),
          overriddenForMs: Number(overrides[i].runOut - now),
        }),
      }
    })
  }

  /** Applies an operator's mode to a row, before a peek at the row. */
  #operate({ mode, banMs, units, forMs }: ModelRequest, row: ModelLimit, now: bigint) {
    const [key, tag] = [recordOf(row.subject), overrideTag(row)]
    if (mode === 'restore' && row.override) this.#forget(key, tag, now)
    if (mode === 'override') {
      const runOut = now + BigInt(forMs!)
      this.#store(key, tag, { time: now, runOut, numbers: [BigInt(units!)] }, now)
    }
    if (mode === 'override' || mode === 'restore') return
    if (mode === 'reset') this.#forget(keyOf(row), row.terms.tag, now)
    if (!row.penalty) return
    const [record, penalty] = [recordOf(row.subject), row.penalty.tag]
    this.#forget(record, penalty, now)
    this.#forget(record, `${penalty}-ban`, now)
    if (mode !== 'ban') return
    this.#store(record, `${penalty}-ban`, banned(BigInt(banMs ?? row.penalty.banMs), now).ban, now)
  }

  /** Removes a state. Writes nothing if there is none. */
  #forget(key: string, tag: string, now: bigint) {
    if (this.keys.get(key)?.states.has(tag)) this.#store(key, tag, undefined, now)
  }

  #state(row: ModelLimit): State | undefined {
    return this.keys.get(keyOf(row))?.states.get(row.terms.tag)
  }

  /** The limit that an operator has set, until its end. */
  #override(row: ModelLimit, now: bigint): State | undefined {
    if (!row.override) return undefined
    const state = this.keys.get(recordOf(row.subject))?.states.get(overrideTag(row))
    return state && now < state.runOut ? state : undefined
  }

  #penaltyState({ subject, penalty }: ModelLimit): LimitStatus {
    const states = this.keys.get(recordOf(subject))?.states
    return { counted: states?.get(penalty!.tag), ban: states?.get(`${penalty!.tag}-ban`) }
  }

  #ban(row: ModelLimit, now: bigint): bigint {
    return row.penalty ? restOf(this.#penaltyState(row), termsOf(row.penalty), now) : 0n
  }

  /** Counts a refusal. Returns the rest of the ban in ms if the refusal started one, otherwise 0. */
  #punish(row: ModelLimit, now: bigint): bigint {
    const { counted, ban } = refused(this.#penaltyState(row), termsOf(row.penalty!), now)
    const record = recordOf(row.subject)
    this.#store(record, `${row.penalty!.tag}-ban`, ban, now)
    this.#store(record, row.penalty!.tag, counted, now)
    return this.#ban(row, now)
  }

  #write(mode: 'take' | 'refund', row: ModelLimit, state: State | undefined, now: bigint) {
    if (row.terms.algorithm !== 'concurrency' && row.terms.algorithm !== 'distinct') {
      this.#store(keyOf(row), row.terms.tag, state, now)
    } else if (state === undefined) {
      this.keys.delete(keyOf(row))
    } else {
      // A refund keeps the TTL, which is always long enough.
      const px = mode === 'take' ? Number(state.runOut - now + grace) : undefined
      this.keys.set(keyOf(row), { states: new Map([[row.terms.tag, state]]), px })
    }
  }

  /** Stores or removes one state, drops other states that have run out, and deletes an empty key. */
  #store(key: string, tag: string, state: State | undefined, now: bigint) {
    const states = new Map(this.keys.get(key)?.states)
    if (state) states.set(tag, state)
    else states.delete(tag)
    for (const [tag, { runOut }] of states) if (runOut <= now) states.delete(tag)
    if (states.size === 0) {
      this.keys.delete(key)
      return
    }
    const last = [...states.values()].map(({ runOut }) => runOut).reduce(greatest)
    this.keys.set(key, { states, px: Number(last - now + grace) })
  }
}

const settles = (mode: ModelRequest['mode']) => mode === 'refund' || mode === 'debt'

export const recordOf = (subject: string) => `sluice:1:{${subject}}`

/** Returns the Redis key of a limit. A log and slots have separate keys; all other states of a subject share the record. */
export function keyOf({ subject, terms: policy }: ModelLimit): string {
  if (policy.algorithm === 'concurrency') return `${recordOf(subject)}:slots:${policy.tag}`
  if (policy.algorithm === 'sliding-log') return `${recordOf(subject)}:log:${policy.tag}`
  if (policy.algorithm === 'distinct') return `${recordOf(subject)}:values:${policy.tag}`
  return recordOf(subject)
}

const overrideTag = ({ terms }: ModelLimit) => `${terms.tag}-limit`

/** A limit in the size of an operator. Its floor is a share in eighths. */
function resized(row: ModelLimit, override: State | undefined): ModelLimit {
  if (!override) return row
  const [limit, { share, scalesBurst }] = [Number(override.numbers[0]), row.override!]
  const terms = { ...row.terms, limit, burst: scalesBurst ? limit : row.terms.burst }
  const whole = BigInt(terms.algorithm === 'token-bucket' ? terms.burst : limit)
  return { ...row, terms, floor: Number((whole * BigInt(share * 8) + 7n) / 8n) }
}

/** Encodes a state as in a record: `tag:time:life:numbers`. */
export function spell(tag: string, { time, runOut, numbers }: State): string {
  return [tag, time, runOut - time, ...numbers].join(':')
}
