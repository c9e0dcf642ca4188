/** Decides limits by their names and keys, without a request. */
import type { Decision, LimitState, LimitStatus } from '../core/base/decision.ts'
import type { ConfigProblem } from '../core/base/errors.ts'
import { keepNothing, sharing } from '../core/base/runtime.ts'
import { variablesFor } from '../core/base/variables.ts'
import { type Soon, whenKnown } from '../core/base/when-known.ts'
import { answer } from '../core/decide/decide.ts'
import type { Engine } from '../core/decide/engine.ts'
import { type Match, twice } from '../core/decide/matched.ts'
import { observe } from '../core/decide/observed.ts'
import { operate, refund } from '../core/decide/operate.ts'
import type { LimiterParts, Outcome } from '../core/decide/question.ts'
import { type Kept, settle } from '../core/decide/settle.ts'
import type { KeyValues } from '../core/program/explicit-key.ts'
import { decisionFields } from '../core/respond/response.ts'
import { Answered } from './answered.ts'
import { checkCost, checkKey, formOf, optionsOf, wrong } from './check.ts'

export type { KeyValue, KeyValues } from '../core/program/explicit-key.ts'

/** What the runtime knows about a call. */
export interface LimitRuntime {
  /** Variables and bindings, such as `env` of a Worker. Defaults to those that the limits were made with, and to those of the process. */
  env?: object | undefined
  /** Keeps the runtime alive until a promise settles, such as `ctx.waitUntil` of a Worker. There, calls share round trips only with it. */
  waitUntil?: ((promise: Promise<unknown>) => void) | undefined
}

export interface LimitOptions extends LimitRuntime {
  /** Units of each limit: a whole number from 0. Defaults to the cost of the limit, which is 1. */
  cost?: number | undefined
  /** The plan whose size applies, of a policy with plans. Defaults to the limit of the policy. */
  plan?: string | undefined
  /** Gives up a wait (`wait` of a limit): the call is then refused. */
  signal?: AbortSignal | undefined
}

/**
 * A decision, with the numbers of the limit that binds: of those that refuse the one with the longest wait, else the one with the least
 * remaining. With the fallback `local` they are those that the process has counted.
 */
export interface LimitDecision extends Decision {
  /** Size of the quota, in units. */
  limit: number
  /** The largest cost that would be admitted now, in units. 0 if nothing has counted: with the fallbacks `allow` and `deny`. */
  remaining: number
  /** ms until the whole quota is available. 0 if it is, and if nothing has counted. */
  resetAfterMs: number
  /**
   * Sets what the call has used in the end: returns the rest of the charge, or charges more, which is never refused. Slots of `concurrency`
   * limits are released. Only the first call has an effect. An error of the store is logged.
   * @param used `cost`: units, a whole number from 0. Defaults to the charge
   */
  settle(used?: { cost?: number }): Promise<void>
  /** The fields for a response, `RateLimit-Policy` and `RateLimit` by default (draft-ietf-httpapi-ratelimit-headers-11). */
  fields(): Record<string, string>
}

/** A limit and a key of it. */
export type LimitKey<Name = string> = readonly [name: Name, key: KeyValues]

export interface RefundOptions extends LimitRuntime {
  /** Units to return. Defaults to the cost of the limit, which is 1. */
  cost?: number | undefined
  /** The plan of the charge. */
  plan?: string | undefined
  /** `decidedAt` of the decision: units that have expired since then are not returned. Defaults to now. */
  decidedAt?: number | undefined
  /** `slot` of the decision, to release slots of a `concurrency` limit. */
  slot?: string | undefined
}

/** Limits that are decided by name and key. */
export interface Limits<Name = string, Options = LimitOptions> {
  /**
   * Decides and charges a limit, or several: all or none, in one round trip. A store that does not answer is no error: `onStoreError` of the
   * limits decides, with the reason `store-error`.
   * @throws {TypeError} if a name, a key or the cost is invalid
   * @throws {ConfigError} if the environment names no database
   */
  limit(limits: readonly LimitKey<Name>[], options?: Options): Promise<LimitDecision>
  limit(name: Name, key: KeyValues, options?: Options): Promise<LimitDecision>
  /** Decides without a charge. Fails as `limit` does. */
  peek(limits: readonly LimitKey<Name>[], options?: Options): Promise<LimitDecision>
  peek(name: Name, key: KeyValues, options?: Options): Promise<LimitDecision>
  /** Makes the whole quota of a key available. Rejects with a `StoreError` if the store does not answer. */
  reset(name: Name, key: KeyValues, options?: LimitRuntime): Promise<LimitStatus>
  /** Returns units of an earlier charge, as `settle` of a decision does. Rejects with a `StoreError` if the store does not answer. */
  refund(name: Name, key: KeyValues, options?: RefundOptions): Promise<LimitStatus>
}

type Variables = Record<string, unknown>

/** Makes the match of a limit by its key. Returns a problem if the name, the key or the plan is invalid. */
export type FindMatch<Name = string> = (
  name: Name,
  key: KeyValues,
  plan: string | undefined,
  env: Variables,
) => Soon<Match | ConfigProblem>

/** A class, so that a door for one request is one object. */
export class Door<Name = string> implements Limits<Name> {
  readonly #engine: Engine
  readonly #find: FindMatch<Name>
  readonly #byDefault: LimitRuntime

  /** @param byDefault what calls have that say nothing else */
  constructor(engine: Engine, find: FindMatch<Name>, byDefault: LimitRuntime = {}) {
    this.#engine = engine
    this.#find = find
    this.#byDefault = byDefault
  }

  limit(...given: unknown[]): Promise<LimitDecision> {
    return this.#decided('limit', given)
  }

  peek(...given: unknown[]): Promise<LimitDecision> {
    return this.#decided('peek', given)
  }

  async reset(name: Name, key: KeyValues, options: LimitRuntime = {}): Promise<LimitStatus> {
    const { env, waitUntil = keepNothing } = this.#runtimeOf(options)
    const match = await this.#matchOf('reset', name, key, options, env)
    const parts = this.#engine.partsOf(env)
    return operate({ mode: 'reset' }, [match], parts, { waitUntil })
  }

  async refund(name: Name, key: KeyValues, given?: RefundOptions): Promise<LimitStatus> {
    const { decidedAt, slot, ...options } = optionsOf<RefundOptions>('refund', given)
    const { env, waitUntil = keepNothing } = this.#runtimeOf(options)
    const matched = { policies: [await this.#matchOf('refund', name, key, options, env)] }
    const parts = this.#engine.partsOf(env)
    const { statuses } = await refund([{ matched, decidedAt, slot }], parts, { waitUntil })
    return statuses[0]!
  }

  #runtimeOf({ env = this.#byDefault.env, waitUntil = this.#byDefault.waitUntil }: LimitRuntime) {
    return { env: variablesFor(env), waitUntil }
  }

  #matchOf(
    call: string,
    name: Name,
    key: KeyValues,
    { cost, plan }: LimitOptions,
    env: Variables,
  ): Soon<Match> {
    checkCost(call, cost)
    checkKey(call, key)
    return whenKnown(this.#find(name, key, plan, env), (found) => {
      if ('expected' in found) throw wrong(call, found)
      return cost === undefined ? found : { ...found, cost }
    })
  }

  async #decided(call: 'limit' | 'peek', given: unknown[]): Promise<LimitDecision> {
    const mode = call === 'peek' ? call : 'take'
    const [asked, options] = formOf<Name, LimitOptions>(call, given)
    const { env, waitUntil: own } = this.#runtimeOf(options)
    const { signal } = options
    const waitUntil = own ?? keepNothing
    const shared = own ?? sharing
    if (asked.length === 0)
      throw wrong(call, { path: 'limits', expected: 'at least one limit', got: 'none' })
    const matches: Match[] = []
    for (const [name, key] of asked) {
      const found = this.#matchOf(call, name, key, options, env)
      matches.push(found instanceof Promise ? await found : found)
    }
    const repeated = twice(matches)
    if (repeated) throw wrong(call, repeated)
    const parts = this.#engine.partsOf(env)
    const matched = { policies: matches }
    const outcome = await answer({ matched, mode, settlesAll: mode === 'take' }, parts, {
      request: signal && { signal },
      ...(shared && { waitUntil: shared }),
    })
    if (mode === 'take') observe(parts, matched, outcome, {}, { env, waitUntil })
    return new DecidedLimits({ outcome, matches, parts, config: this.#engine.config, waitUntil })
  }
}

/** The calls of a door as functions of an object, which callers may take apart. */
export const callsOf = (door: Limits): Limits => ({
  limit: door.limit.bind(door),
  peek: door.peek.bind(door),
  reset: door.reset.bind(door),
  refund: door.refund.bind(door),
})

interface LimitOutcome {
  outcome: Outcome
  matches: Match[]
  parts: LimiterParts
  config: Engine['config']
  waitUntil: (promise: Promise<unknown>) => void
}

/** A class, so that a decision makes no function that is not called. */
class DecidedLimits extends Answered implements LimitDecision {
  readonly #made: LimitOutcome

  constructor(made: LimitOutcome) {
    const { outcome, matches } = made
    const smallest = () => Math.min(...matches.map(({ terms }) => terms.limit))
    super(outcome.decision, smallest, outcome.counted)
    this.#made = made
  }

  /** The states of its limits, with those that the process has counted. Absent if it has counted none. */
  get counted(): LimitState[] | undefined {
    return this.#made.outcome.counted
  }

  async settle(used?: { cost?: number }): Promise<void> {
    const { cost } = optionsOf<{ cost?: number }>('settle', used)
    checkCost('settle', cost)
    const { outcome, parts, waitUntil } = this.#made
    const { charges } = outcome
    if (!charges) return
    delete outcome.charges // they are settled once
    const kept: Kept = new Map()
    if (cost !== undefined) for (const limit of charges.keys()) kept.set(limit, cost)
    const settling = settle(charges, parts, undefined, waitUntil, kept).catch(parts.onStoreError)
    waitUntil(settling)
    await settling
  }

  fields(): Record<string, string> {
    return decisionFields(this, this.#made.config)
  }
}
