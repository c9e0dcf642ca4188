/** Counts the keys of another rate limiter, with the terms that it sets for each call. */
import type { LimitState } from '../core/base/decision.ts'
import { MAX_MS } from '../core/base/duration.ts'
import { Recent } from '../core/base/recent.ts'
import { keepNothing, sharing } from '../core/base/runtime.ts'
import { largestQuota, MAX_ENTRIES } from '../core/base/units.ts'
import { variablesFor } from '../core/base/variables.ts'
import type { FeatureFields } from '../core/config/feature.ts'
import type { ConfigOptions, PolicyOptions } from '../core/config/options.ts'
import { type Policy, parseConfig } from '../core/config/parse.ts'
import type { ScriptPart } from '../core/connection/upstash/part.ts'
import { createLimiter } from '../core/create.ts'
import { prepare } from '../core/decide/decide.ts'
import { limitState } from '../core/decide/limit.ts'
import { type Operation, operate, orThrow, refund } from '../core/decide/operate.ts'
import type { Match } from '../core/program/match.ts'

/** Where an adapter counts. The fields are those of a configuration (docs/reference/configuration.md). */
export interface AdapterOptions
  extends Pick<
    ConfigOptions,
    'store' | 'namespace' | 'hashKeys' | 'clock' | 'deadline' | 'batching' | 'use'
  > {
  /** Variables and bindings, such as `env` of `cloudflare:workers`. Defaults to the variables of the process. */
  env?: object
}

/** The terms of a quota. Without units it admits nothing. */
export interface CounterTerms extends Pick<PolicyOptions, 'algorithm'> {
  limit: number
  /** ms */
  window: number
  /** A ban that the first refusal starts. Times in ms. */
  penalty?: { after: 1; within: number; ban: number; max: number }
}

/** The terms of a limit of another library, which may be any number. */
interface ForeignTerms {
  /** Requests. `Infinity` is no limit. */
  limit: number
  windowMs: number
  /** How long a request over the limit blocks the key, ms. Defaults to 0. */
  blockMs?: number
}

/**
 * The exact terms of a limit, or the next stricter ones: a limit is rounded down, a duration up. Above 10,000 units the count is that of a
 * sliding window, or of a fixed window if a product would not be exact.
 */
export function termsOf({ limit: units, windowMs, blockMs = 0 }: ForeignTerms): CounterTerms {
  const limit = Math.min(Math.floor(units), Number.MAX_SAFE_INTEGER)
  const [window, ban] = [wholeMs(windowMs), wholeMs(blockMs)]
  const algorithm =
    limit <= MAX_ENTRIES
      ? 'sliding-log'
      : limit <= largestQuota('sliding-window', window)
        ? 'sliding-window'
        : 'fixed-window'
  const terms = { algorithm, limit, window } as const
  return blockMs > 0 ? { ...terms, penalty: { after: 1, within: ban, ban, max: ban } } : terms
}

/** Rounds up, without the error of a product: 1.1 × 1000 is 1100.0000000000002. */
export const wholeMs = (ms: number) => Math.min(Math.max(1, Math.ceil(ms - 1e-6)), MAX_MS)

/** The most sets of terms that are kept parsed. */
const MAX_TERMS = 1_000

/**
 * @param name names the counters in Redis
 * @param needs the fields and the parts of the script that the terms of the adapter need. Defaults to none
 * @throws {ConfigError} immediately, if an option is invalid
 */
export function createCounter(
  { env, ...options }: AdapterOptions,
  name: string,
  {
    fields = [],
    lua = [],
  }: { fields?: readonly FeatureFields[]; lua?: readonly ScriptPart[] } = {},
) {
  const limiter = createLimiter({ ...options, policies: [] }, { lua })
  const known = new Recent<Policy>(MAX_TERMS)

  function matchOf(terms: CounterTerms, key: string): Match {
    const id = JSON.stringify(terms)
    let policy = known.get(id)
    if (!policy) {
      const policies = [{ name, key: 'global', ...terms }]
      policy = parseConfig({ ...options, policies }, fields).policies[0]!
      known.set(id, policy)
    }
    return { policy, partitionKey: [['key', key]], cost: policy.cost.otherwise }
  }
  const partsOf = () => limiter.partsOf(variablesFor(env))

  return {
    /** Takes one unit, in one atomic call. Without Redis the isolate counts. */
    async take(terms: CounterTerms, key: string): Promise<CounterState> {
      if (terms.limit < 1) return refusalBy(terms)
      const match = matchOf(terms, key)
      const parts = partsOf()
      const prepared = await prepare({ matched: { policies: [match] } }, parts)
      if ('decision' in prepared) return prepared.decision.limits[0]!
      const { deadlineMs } = match.policy
      const reply = await parts.store.decide(prepared.requests, {
        deadlineMs,
        fallback: true,
        ...(sharing && { waitUntil: sharing }),
      })
      return limitState(match, reply.states[0]![0]!)
    },

    /** @throws {StoreError} if Redis does not answer */
    async operate(
      mode: Extract<Operation['mode'], 'peek' | 'reset'>,
      terms: CounterTerms,
      key: string,
    ) {
      const status = operate({ mode }, [matchOf(terms, key)], partsOf(), { waitUntil: keepNothing })
      return orThrow(await status).limits[0]!
    },

    /** Returns one unit. @throws {StoreError} if Redis does not answer */
    async giveBack(terms: CounterTerms, key: string): Promise<void> {
      const matched = { policies: [matchOf(terms, key)] }
      orThrow(await refund([{ matched }], partsOf(), { waitUntil: keepNothing }))
    },
  }
}

type CounterState = Pick<
  LimitState,
  'allowed' | 'limit' | 'remaining' | 'retryAfterMs' | 'resetAfterMs' | 'bannedForMs'
>

/** The refusal of a quota without units, for as long as if it had been used up now. */
function refusalBy({ limit, window, penalty }: CounterTerms): CounterState {
  const waitMs = Math.max(window, penalty?.ban ?? 0)
  return { allowed: false, limit, remaining: 0, retryAfterMs: waitMs, resetAfterMs: waitMs }
}

/** Waits are announced in whole seconds, so that no client returns too early. */
export const inSeconds = (ms: number) => Math.ceil(ms / 1000)
