/** What the engine decides: policies, each with a key and a cost. HTTP makes them from a request. */
import type { Period } from '../base/calendar.ts'
import { systemClock } from '../base/clock.ts'
import type { Denied, Lacking } from '../base/decision.ts'
import type { ConfigProblem } from '../base/errors.ts'
import { canonical, type Part } from '../base/part.ts'
import type { Policy } from '../config/parse.ts'
import type { Condition } from '../config/schema/condition.ts'
import type { Penalty } from '../connection/store.ts'

/** A policy that applies to a request. */
export interface Match {
  /** The policy: it has the terms of its limits. */
  terms: Policy
  /** The values of the key. The subject in the store is made of them. */
  partitionKey: Part[]
  /** The subject, for operations on one whose key is not known. */
  subject?: string
  /** The values that a policy with `distinct` counts, each once. */
  distinct?: Part[]
  cost: number
  /** The units that the request must leave free. Absent if it may use the whole quota. */
  floor?: number
  /** The part of the quota that these units are, above 0 and at most 1. */
  share?: number
  period?: Period
  /** The bans of the key. Defaults to those of the policy. */
  penalty?: Penalty
  /** Set if one request has selected this quota and the match before it by one policy. They have one state. */
  isFurther?: true
}

/** Why a policy does not apply to a request: a field of its match, an entry of `allow`, or a key part without a value. */
export type Unmet =
  | { policy: Policy; unmet: 'match'; field: keyof Condition }
  | { policy: Policy; unmet: 'allow'; entry: string }
  | ({ policy: Policy; unmet: 'key' } & Lacking)

export interface Matched {
  denied?: Denied
  /**
   * The policies that apply, in order. A policy has several consecutive matches, each of which is charged, if the readings of a path or the
   * messages of a body select several quotas. Empty if an entry of `deny` matches.
   */
  policies: Match[]
  /** Why the others do not apply, in order. Absent if all apply, or an entry of `deny` matches. */
  unmet?: Unmet[]
  /** The partition key of the shield. Absent without a shield, or if a key part has no value. */
  shield?: Part[]
  /** Policies that depend on the body, which is not read because the request is refused without it. They are not in `policies`. */
  unread?: Policy[]
}

/** The match of a policy with a partition key, at the cost of the policy by default. The clock selects the period of a calendar window. */
export function matchWith(
  terms: Policy,
  partitionKey: Part[],
  cost = terms.cost.otherwise,
  clock = systemClock,
): Match {
  const period = terms.calendar?.periodAt(clock())
  return period ? { terms, partitionKey, cost, period } : { terms, partitionKey, cost }
}

/** A quota that is charged twice in one call would have two decisions. */
export function twice(matches: Match[]): ConfigProblem | undefined {
  if (matches.length < 2) return undefined
  const seen = new Set<string>()
  for (const { terms, partitionKey } of matches) {
    const quota = `${terms.name} ${canonical(partitionKey)}`
    if (seen.has(quota)) {
      const expected = 'each limit and key once (charge more units with cost)'
      return { path: 'limits', expected, got: `"${terms.name}" twice with one key` }
    }
    seen.add(quota)
  }
  return undefined
}
