/** The entrypoint of the gateway for other Workers: a service binding with the call of Cloudflare's rate limiting binding. */
import { WorkerEntrypoint } from 'cloudflare:workers'
import type { LimitStatus } from './core/base/decision.ts'
import { deployed } from './hosts/worker/deployed.ts'
import type {
  KeyValues,
  LimitDecision,
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
  key: KeyValues
  /** The name of the policy. Defaults to `props.policy` of the binding. */
  policy?: string
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
    return this.#door().reset(this.#policyOf(call), call.key, this.#runtime())
  }

  /** Returns units of an earlier charge. Rejects if the store does not answer. */
  async refund(
    call: RateLimitCall & Pick<RefundOptions, 'decidedAt' | 'slot'>,
  ): Promise<LimitStatus> {
    const { key, cost, decidedAt, slot } = call
    const options = { cost, decidedAt, slot, ...this.#runtime() }
    return this.#door().refund(this.#policyOf(call), key, options)
  }

  async #decided(mode: 'limit' | 'peek', call: RateLimitCall): Promise<RateLimitOutcome> {
    const { key, cost, plan } = Object(call) as RateLimitCall
    const options = { cost, plan, ...this.#runtime() }
    const decision = await this.#door()[mode](this.#policyOf(call), key, options)
    return { success: decision.allowed, ...decision }
  }

  #door(): Limits {
    if (!deployed.limiter) {
      throw new Error(
        'RateLimit: this Worker has no gateway. Export createGateway(config) as default.',
      )
    }
    return policyDoor(deployed.limiter)
  }

  #policyOf(call: Pick<RateLimitCall, 'policy'>): string {
    const policy = Object(call).policy ?? this.ctx.props?.policy
    if (policy === undefined) {
      throw new TypeError(
        'limit: policy: expected the name of a policy, got nothing. Write it in the call or in props of the binding.',
      )
    }
    return policy
  }

  #runtime() {
    return {
      env: this.env,
      waitUntil: (promise: Promise<unknown>) => this.ctx.waitUntil(promise),
    }
  }
}
