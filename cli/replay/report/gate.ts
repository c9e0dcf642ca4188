import { expectationText, isExceeded } from './expectation-content.ts'
import type { ReplayReport } from './types.ts'
import { betweenText, percentText, rangeText } from './words.ts'

export interface GateLimits {
  /** The largest share of refused requests, between 0 and 1 (`--max-refused 0.1%` is 0.001). */
  maxRefused?: number | undefined
  /** The largest number of clients with a refusal. */
  maxClients?: number | undefined
}

/** Returns why the report exceeds the limits or an expectation, one sentence for each; none if it does not. The upper bounds count. */
export function gate(
  { total, policies, notReplayed, expectations = [] }: ReplayReport,
  { maxRefused, maxClients }: GateLimits,
): string[] {
  const { requests, refused, share, clients } = total
  const reasons = expectations.filter(isExceeded).map(expectationText)
  const isLimited = maxRefused !== undefined || maxClients !== undefined
  if (isLimited && policies.length === 0 && notReplayed.length > 0) {
    reasons.push('No policy was replayed, so nothing was checked (--max-refused, --max-clients).')
  }
  if (maxRefused !== undefined && share.high > maxRefused) {
    reasons.push(
      `${betweenText(refused)} of ${rangeText(requests)} requests would be refused (${rangeText(share, percentText)}); at most ${percentText(maxRefused)} may be (--max-refused).`,
    )
  }
  if (maxClients !== undefined && clients.high > maxClients) {
    reasons.push(
      `${betweenText(clients)} clients would be refused; at most ${rangeText(maxClients)} may be (--max-clients).`,
    )
  }
  return reasons
}
