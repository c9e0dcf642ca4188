/** The units that a stream may use before it takes more (`cost.cut`). */
import type { PolicyLimit } from '../../core/decide/limit.ts'
import type { Kept, Metering } from '../../core/decide/settle.ts'
import { Usage } from './usage.ts'

/** The units of one limit that are reserved for a response. They grow by chunks of `otherwise` while the stream runs. */
export class Allowance {
  readonly limit: PolicyLimit
  readonly usage: Usage
  readonly #metering: Metering
  /** Those of the first charge, and those taken since. */
  readonly #taken: PolicyLimit[]
  #units: number
  /** The call that takes the next chunk. */
  renewing: Promise<void> | undefined
  #counted = 0
  #wasKnown = false
  /** Set if the stream may not go on: why, for the client. */
  refusal: StreamEnd | undefined

  constructor(limit: PolicyLimit, metering: Metering) {
    this.limit = limit
    this.usage = new Usage(limit)
    this.#metering = metering
    this.#taken = [limit]
    this.#units = limit.cost
  }

  /**
   * Reports whether the stream may pass another event. Takes the next chunk when the reserved units are used. The stream runs on
   * meanwhile, for at most one chunk; then it waits.
   *
   * The first event with usage does not end the stream: it is usually the last event before the end.
   */
  mayGoOn(): boolean | Promise<boolean> {
    const { counted, isKnown } = this.usage
    const isFirstUsage = isKnown && !this.#wasKnown
    if (counted === this.#counted) return true
    this.#counted = counted
    this.#wasKnown = isKnown
    return isFirstUsage || this.#mayUse()
  }

  #mayUse(): boolean | Promise<boolean> {
    const { name, cost } = this.limit.policy
    const used = this.usage.soFar
    if (used < this.#units) return true
    if (used >= cost.max!) this.refusal ??= { policy: name, max: cost.max! }
    if (this.refusal) return false
    this.renewing ??= this.#renew(used).finally(() => {
      this.renewing = undefined
    })
    return used < this.#units + cost.otherwise || this.renewing.then(() => this.#mayUse())
  }

  async #renew(used: number): Promise<void> {
    const { policy, ...rest } = this.limit
    const { otherwise: chunk, max } = policy.cost
    const needed = chunk * Math.ceil((used - this.#units + 1) / chunk)
    const cost = Math.min(needed, max! - this.#units)
    // Without the penalty: a stream that ends is not a refused request.
    const more = { ...rest, policy, cost, penalty: undefined } as unknown as PolicyLimit
    const { allowed, retryAfterMs } = await this.#metering.take(more)
    if (!allowed) {
      this.refusal = { policy: policy.name, retryAfterMs }
      return
    }
    this.#units += cost
    this.#taken.push(more)
  }

  /** Divides the cost of the response among the reserved units. The last ones are refunded first, and carry what is above all of them. */
  divide(cost: number, kept: Kept): void {
    let rest = cost
    for (const one of this.#taken) {
      const isLast = one === this.#taken.at(-1)
      const part = isLast ? rest : Math.min(rest, one.cost)
      kept.set(one, part)
      rest -= part
    }
  }
}

/** Why a stream ends early. */
export type StreamEnd = { policy: string } & (
  | { max: number; retryAfterMs?: undefined }
  | { max?: undefined; retryAfterMs: number | null }
)
