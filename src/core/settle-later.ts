import type { RuntimeContext } from './base/runtime.ts'
import { withResolvers } from './base/with-resolvers.ts'
import type { PolicyLimit } from './decide/limit.ts'
import type { LimiterParts } from './decide/question.ts'
import {
  type Charges,
  holdsSlots,
  type Kept,
  type Metering,
  type ResponseHead,
  settle,
  takeMore,
} from './decide/settle.ts'

/** The places at which a feature takes part after a response. */
export interface SettleStages {
  /**
   * Reads the cost of a response while its body passes, and returns the response to send; `undefined` if no charge depends on its body, or the
   * body has no readable cost: `end` is then not called.
   */
  meter?: (answer: Response, metering: Metering) => Response | undefined
  /** Calls back once the body of a response is sent, or sending fails. @returns the response to send */
  whenEnded?: (answer: Response, ended: () => void) => Response
  /** Settles the charges that depend on a response. */
  settleLater?: typeof settleLater
}

/** Prepares to settle charges after the response. `waitUntil` keeps their settlement if the client disconnects. */
export function settleLater(
  charges: Charges,
  parts: LimiterParts,
  waitUntil: RuntimeContext['waitUntil'],
  { meter, whenEnded }: SettleStages,
) {
  const { promise, resolve } = withResolvers<void>()
  waitUntil(promise)
  let isSettled = false
  /** @param head `undefined` if the response is not known */
  const now = (head?: ResponseHead, kept?: Kept) => {
    if (isSettled) return // A second refund would return units of other requests.
    isSettled = true
    const settling = settle(charges, parts, head, waitUntil, kept)
    resolve(settling.catch(parts.onStoreError))
  }
  const take = (limit: PolicyLimit) => takeMore(limit, charges, parts.store, waitUntil)
  return {
    now,
    withResponse(response: Response, method: string): Response {
      const { status, headers } = response
      const limits = [...charges.keys()]
      const end = (kept?: Kept) => now({ status, headers }, kept)
      // Servers discard the body of a response to HEAD, so `whenEnded` would never call back.
      const isSent = method !== 'HEAD'
      const metered = meter?.(response, { limits, isSent, take, end })
      if (metered) return metered
      if (isSent && whenEnded && limits.some(holdsSlots)) return whenEnded(response, end)
      now(response)
      return response
    },
  }
}
