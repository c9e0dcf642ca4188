/** The entrypoint of the gateway for other Workers: a service binding with the call of Cloudflare's rate limiting binding. */
import { WorkerEntrypoint } from 'cloudflare:workers'
import type { LimitStatus } from './core/base/decision.ts'
import { variablesFor } from './core/base/variables.ts'
import { type SettledDecision, settleEach } from './core/decide/operate.ts'
import type { Limiter } from './core/feature.ts'
import { matchedByKeys } from './core/program/explicit-key.ts'
import { deployed } from './hosts/worker/deployed.ts'
import { checkCost, wrong } from './limits/check.ts'
import type {
  KeyValues,
  LimitDecision,
  LimitKey,
  LimitOptions,
  Limits,
  RefundOptions,
} from './limits/door.ts'
import { policyDoor } from './limits/policies.ts'

/** The props of a binding (`props` in the wrangler file). */
export interface RateLimitProps {
  /** The policy of calls that name none. */
  policy?: string
}

/** What a call asks. */
export interface RateLimitCall extends Pick<LimitOptions, 'cost' | 'plan'> {
  /** The key, with a value for each part of the key of the policy. */
  key?: KeyValues
  /** The name of the policy. Defaults to `props.policy` of the binding. */
  policy?: string
  /** Several limits, each with its policy and key, in place of `key` and `policy`: all are charged, or none. */
  limits?: readonly LimitKey[]
}

/** The answer to a call. */
export interface RateLimitOutcome extends Omit<LimitDecision, 'settle' | 'fields'> {
  /** `allowed`, by its name in Cloudflare's binding. */
  success: boolean
}

/**
 * Decides policies of the gateway for another Worker, without a token and without a public URL.
 * A call rejects with a `TypeError` if the policy, the key or the cost is invalid, and with an `Error` that names the cause if there is no
 * gateway or no database. If the store does not answer, `onStoreError` of the policy decides.
 * @example
 * // wrangler.jsonc of the other Worker
 * { "services": [{ "binding": "LOGIN", "service": "sluice", "entrypoint": "RateLimit", "props": { "policy": "login" } }] }
 * // the other Worker
 * const { success } = await env.LOGIN.limit({ key: address })
 */
export class RateLimit extends WorkerEntrypoint<object, RateLimitProps> {
  /** Decides and charges. */
  async limit(call: RateLimitCall): Promise<RateLimitOutcome> {
    return this.#decided('limit', call)
  }

  /** Decides without a charge. */
  async peek(call: RateLimitCall): Promise<RateLimitOutcome> {
    return this.#decided('peek', call)
  }

  /** Makes the whole quota of a key available. Rejects if the store does not answer. */
  async reset(call: Pick<RateLimitCall, 'key' | 'policy'>): Promise<LimitStatus> {
    const [[policy, key]] = this.#limitsOf('reset', call)
    return this.#door.reset(policy, key)
  }

  /** Returns units of an earlier charge. Rejects if the store does not answer. */
  async refund(
    call: RateLimitCall & Pick<RefundOptions, 'decidedAt' | 'slot'>,
  ): Promise<LimitStatus> {
    const [[policy, key]] = this.#limitsOf('refund', call)
    const { cost, plan, decidedAt, slot } = call
    return this.#door.refund(policy, key, { cost, plan, decidedAt, slot })
  }

  /**
   * Returns or charges the rest of what a decision has charged, and releases its slots. Rejects if the store does not answer.
   * @param call that of the decision, with the decision and the units that were `used`. Without `used` only slots are released
   * @returns the limits that change
   */
  async settle(
    call: RateLimitCall & {
      decision: Pick<RateLimitOutcome, 'limits' | 'decidedAt' | 'slot'>
      used?: number
    },
  ): Promise<LimitStatus> {
    const limits = this.#limitsOf('settle', call)
    const { decision, plan, used } = call
    checkCost('settle', used)
    const waitUntil = this.#waitUntil
    const env = variablesFor(this.env)
    const rules = this.#limiter.rulesOf({ env, waitUntil, context: undefined })
    const matched = await matchedByKeys(rules, limits, plan)
    if ('expected' in matched) throw wrong('settle', matched)
    if (decision.decidedAt === undefined) return { limits: [] } // The store has not charged.
    const question = { matched, used, decision: decision as SettledDecision }
    const parts = this.#limiter.partsOf(env)
    return (await settleEach([question], parts, { waitUntil })).statuses[0]!
  }

  async #decided(mode: 'limit' | 'peek', call: RateLimitCall): Promise<RateLimitOutcome> {
    const limits = this.#limitsOf(mode, call)
    const { cost, plan } = call
    const decision = await this.#door[mode](limits, { cost, plan })
    return { success: decision.allowed, ...decision }
  }

  get #limiter(): Limiter {
    if (deployed.limiter) return deployed.limiter
    throw new Error(
      'RateLimit: this Worker has no gateway. Export createGateway(config) as default.',
    )
  }

  #limitsOf(name: string, call: RateLimitCall): [LimitKey, ...LimitKey[]] {
    const { limits, key, policy = this.ctx.props?.policy } = Object(call) as RateLimitCall
    if (limits !== undefined) return limits as [LimitKey]
    if (policy !== undefined) return [[policy, key as KeyValues]]
    throw new TypeError(
      `${name}: policy: expected the name of a policy, got nothing. Write it in the call or in props of the binding.`,
    )
  }

  get #door(): Limits {
    return policyDoor(this.#limiter, { env: this.env, waitUntil: this.#waitUntil })
  }

  readonly #waitUntil = (promise: Promise<unknown>) => this.ctx.waitUntil(promise)
}
