import type { Decision, LimitState } from '../../base/decision.ts'
import { fieldNames, type HeaderSet, prefixedNames } from '../../config/schema/headers.ts'
import {
  fullAt,
  fullAtIso,
  limit,
  policy,
  type Quantity,
  remaining,
  unit,
  untilFull,
  untilMore,
  untilReset,
  used,
  window,
} from './quantities.ts'
import { quoted } from './structured.ts'

/** A quantity of the reported limit, or a list with an item for each of several limits. */
type Field = Quantity | { lists: (decision: Decision) => LimitState[]; item: Quantity }

interface FieldSet<Name extends string = string> {
  /** Selects the limit whose state the fields report. */
  reports: (decision: Decision) => LimitState | undefined
  fields: Record<Name, Field>
}

const enforced = ({ limits }: Decision) => limits.filter(({ mode }) => mode === 'enforce')

/**
 * Selects the enforced limit with the lowest `rank`; among equals, the one with the longest `wait`. On a refusal it selects the limit
 * that refuses longest, because Retry-After is its wait.
 */
const nearest =
  (rank: (limit: LimitState) => number, wait: (limit: LimitState) => number) =>
  (decision: Decision): LimitState | undefined => {
    const refusing = ({ retryAfterMs }: LimitState) => -(retryAfterMs ?? Number.POSITIVE_INFINITY)
    const by = decision.allowed ? rank : refusing
    return enforced(decision)
      .filter(({ allowed }) => allowed === decision.allowed)
      .toSorted((a, b) => by(a) - by(b) || wait(b) - wait(a))[0]
  }

/** Selects the limit with the smallest remaining share of its quota. */
const leastShare = nearest(
  ({ remaining, limit }) => remaining / limit,
  ({ nextAfterMs }) => nextAfterMs,
)
/** Selects "the lower remaining" (draft-6 and draft-7, "Server Behavior"): fields that name no policy must hold for all policies. */
const leastLeft = nearest(
  ({ remaining }) => remaining,
  ({ resetAfterMs }) => resetAfterMs,
)

/**
 * Returns the limits that draft-6 and draft-7 can list. They require `w`, and "two quota policies MUST NOT be associated with the same
 * quota units". Of limits with equal quota units, the one with the longest window is listed, because it is the strictest.
 */
function distinctQuotas(decision: Decision): LimitState[] {
  const candidates = enforced(decision).filter((state) => window(state) !== undefined)
  const byWindow = candidates.toSorted((a, b) => a.windowMs - b.windowMs)
  const strictest = new Map(byWindow.map((state) => [limit(state), state]))
  return candidates.filter((state) => strictest.get(limit(state)) === state)
}

/** Writes `head;name=value;…`, and omits parameters without a value. */
const item =
  (head: Quantity, parameters: Record<string, Quantity>): Quantity =>
  (...about) =>
    Object.entries(parameters).reduce(
      (text, [name, quantity]) => {
        const value = quantity(...about)
        return value === undefined ? text : `${text};${name}=${value}`
      },
      String(head(...about)),
    )

/** Writes `name=value, …`. */
const dictionary =
  (members: Record<string, Quantity>): Quantity =>
  (...about) =>
    Object.entries(members)
      .map(([name, quantity]) => `${name}=${quantity(...about)}`)
      .join(', ')

const name: Quantity = ({ policy }) => quoted(policy)
const oldPolicies: Field = { lists: distinctQuotas, item: item(limit, { w: window }) }

/**
 * The fields of each set, as data, so that a new draft only changes data. `draft-n` is draft-ietf-httpapi-ratelimit-headers-n, which
 * uses Structured Fields (RFC 9651; RFC 8941 before draft-8).
 * https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/
 * https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api
 */
const sets: { [S in keyof typeof fieldNames]: FieldSet<keyof (typeof fieldNames)[S] & string> } = {
  'draft-11': {
    reports: leastShare,
    fields: {
      policy: { lists: enforced, item: item(name, { q: limit, qu: unit, w: window }) },
      state: item(name, { r: remaining, t: untilMore }),
    },
  },
  'draft-7': {
    reports: leastLeft,
    fields: {
      policy: oldPolicies,
      state: dictionary({ limit, remaining, reset: untilReset }),
    },
  },
  'draft-6': {
    reports: leastLeft,
    fields: { policy: oldPolicies, limit, remaining, reset: untilReset },
  },
  github: {
    reports: leastLeft,
    fields: { limit, remaining, used, reset: fullAt, resource: policy },
  },
}

const resets = { epoch: fullAt, delta: untilFull, iso: fullAtIso }
const prefixed = (reset: keyof typeof resets): FieldSet => ({
  reports: leastLeft,
  fields: { limit, remaining, reset: resets[reset] },
})

/** The fields of a set for one decision. */
export interface FieldValues {
  set: HeaderSet
  fields: [name: string, value: string][]
  /** The remaining units that the fields report. */
  remaining: number
}

/** Returns the fields of a set for a decision, or `undefined` if the decision has no limit to report. */
export function fieldValues(set: HeaderSet, decision: Decision): FieldValues | undefined {
  const [{ reports, fields }, names]: [FieldSet, Record<string, string>] =
    typeof set === 'string'
      ? [sets[set], fieldNames[set]]
      : [prefixed(set.reset), prefixedNames(set.prefix)]
  const reported = reports(decision)
  if (!reported) return undefined
  return {
    set,
    fields: Object.entries(names).flatMap(([key, name]): [string, string][] => {
      const field = fields[key]!
      const { lists, item } =
        typeof field === 'object' ? field : { lists: () => [reported], item: field }
      const items = lists(decision).map((limit) => item(limit, decision))
      return items.length > 0 ? [[name, items.join(', ')]] : []
    }),
    remaining: remaining(reported),
  }
}
