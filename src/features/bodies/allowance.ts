/** The units that a stream may use before it takes more (`cost.cut`). */
import type { PolicyLimit } from '../../core/decide/limit.ts'
import type { Kept, Metering } from '../../core/decide/settle.ts'
import { Usage } from './usage.ts'

/** Why a stream ends early. */
export type StreamEnd = { policy: string } & (
  | { max: number; retryAfterMs?: undefined }
  | { max?: undefined; retryAfterMs: number | null }
)

export type Allowance = ReturnType<typeof allowanceOf>

/** The units of one limit that are reserved for a response. They grow by chunks of `otherwise` while the stream runs. */
export function allowanceOf(limit: PolicyLimit, metering: Metering) {
  const { name, cost } = limit.terms
  const chunk = cost.otherwise
  const max = cost.max!
  const usage = new Usage(limit)
  const taken = [limit]
  let units = limit.cost
  let counted = 0
  let wasKnown = false
  const allowance = {
    limit,
    usage,
    renewing: undefined as Promise<void> | undefined,
    /** Set if the stream may not go on. */
    refusal: undefined as StreamEnd | undefined,

    /**
     * True if the stream may pass another event. Takes the next chunk when the reserved units are used: the stream runs on meanwhile, for
     * one chunk at most. The first event with usage does not end it: it is usually the last event before the end.
     */
    mayGoOn(): boolean | Promise<boolean> {
      const isFirstUsage = usage.isKnown && !wasKnown
      if (usage.counted === counted) return true
      counted = usage.counted
      wasKnown = usage.isKnown
      return isFirstUsage || mayUse()
    },

    /** Divides the cost of the response among the reserved units. The last ones are refunded first, and carry what is above all of them. */
    divide(cost: number, kept: Kept): void {
      let rest = cost
      for (const one of taken) {
        const part = one === taken.at(-1) ? rest : Math.min(rest, one.cost)
        kept.set(one, part)
        rest -= part
      }
    },
  }

  function mayUse(): boolean | Promise<boolean> {
    const used = usage.soFar
    if (used < units) return true
    if (used >= max) allowance.refusal ??= { policy: name, max }
    if (allowance.refusal) return false
    allowance.renewing ??= renew(used).finally(() => {
      allowance.renewing = undefined
    })
    return used < units + chunk || allowance.renewing.then(mayUse)
  }

  async function renew(used: number): Promise<void> {
    const needed = chunk * Math.ceil((used - units + 1) / chunk)
    const cost = Math.min(needed, max - units)
    // Without the penalty: a stream that ends is not a refused request.
    const { penalty: _, ...others } = limit
    const more = { ...others, cost }
    const { allowed, retryAfterMs } = await metering.take(more)
    if (allowed) {
      units += cost
      taken.push(more)
    } else allowance.refusal = { policy: name, retryAfterMs }
  }

  return allowance
}
