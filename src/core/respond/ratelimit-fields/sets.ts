import type { Decision, LimitState } from '../../base/decision.ts'
import { fieldNames, type HeaderSet, prefixedNames } from '../../config/schema/headers.ts'
import {
  fullAt,
  fullAtIso,
  limit,
  policy,
  type Quantity,
  remaining,
  untilFull,
  untilMore,
  untilReset,
  used,
  window,
} from './quantities.ts'

interface FieldSet<Name extends string = string> {
  /** Selects the limit whose state the fields report. */
  reports: (decision: Decision) => LimitState | undefined
  /** The value of each field, for the reported limit. A field without a value is left out. */
  fields: Record<Name, Quantity>
}

const enforced = ({ limits }: Decision) => limits.filter(({ mode }) => mode === 'enforce')

/**
 * Selects the enforced limit with the lowest `rank`; among equals, the one with the longest `wait`. On a refusal it selects the limit
 * that refuses longest, because Retry-After is its wait.
 */
const nearest =
  (rank: (limit: LimitState) => number, wait: (limit: LimitState) => number) =>
  ({ allowed, limits }: Decision): LimitState | undefined => {
    const by = allowed ? rank : refusing
    let first: LimitState | undefined
    for (const state of limits) {
      if (state.mode !== 'enforce' || state.allowed !== allowed) continue
      const isFirst =
        !first || by(state) < by(first) || (by(state) === by(first) && wait(state) > wait(first))
      if (isFirst) first = state
    }
    return first
  }

const refusing = ({ retryAfterMs }: LimitState) => -(retryAfterMs ?? Number.POSITIVE_INFINITY)

/** Selects the limit with the smallest remaining share of its quota; on a refusal the one that refuses longest. */
export const leastShare = nearest(
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
function item(head: Quantity, parameters: Record<string, Quantity>): Quantity {
  const entries = Object.entries(parameters)
  return (limit, decision) => {
    let text = String(head(limit, decision))
    for (const [name, quantity] of entries) {
      const value = quantity(limit, decision)
      if (value !== undefined) text += `;${name}=${value}`
    }
    return text
  }
}

/** Writes `name=value, …`. */
function dictionary(members: Record<string, Quantity>): Quantity {
  const entries = Object.entries(members)
  return (...about) => entries.map(([name, quantity]) => `${name}=${quantity(...about)}`).join(', ')
}

/** Writes an item for each of several limits; nothing for none. */
const list =
  (lists: (decision: Decision) => LimitState[], item: Quantity): Quantity =>
  (_, decision) => {
    let text = ''
    for (const limit of lists(decision)) text += `${text && ', '}${item(limit, decision)}`
    return text || undefined
  }

/** The list of the quotas, as draft-11 writes it. Policy names need no escaping in an sf-string (RFC 9651, 3.3.3). */
const quotas: Quantity = (_, { limits }) => {
  let text = ''
  for (const one of limits) {
    if (one.mode !== 'enforce') continue
    const w = window(one)
    const qu = one.unit ? `;qu="${one.unit}"` : ''
    text += `${text && ', '}"${one.policy}";q=${limit(one)}${qu}${w === undefined ? '' : `;w=${w}`}`
  }
  return text || undefined
}

/** What is left of a quota, as draft-11 writes it. */
const left: Quantity = (state, decision) => {
  const t = untilMore(state, decision)
  return `"${state.policy}";r=${remaining(state)}${t === undefined ? '' : `;t=${t}`}`
}

const oldPolicies = list(distinctQuotas, item(limit, { w: window }))

/**
 * The fields of each set, as data, so that a new draft only changes data. `draft-n` is draft-ietf-httpapi-ratelimit-headers-n, which
 * uses Structured Fields (RFC 9651; RFC 8941 before draft-8).
 * https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/
 * https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api
 */
const sets: { [S in keyof typeof fieldNames]: FieldSet<keyof (typeof fieldNames)[S] & string> } = {
  'draft-11': {
    reports: leastShare,
    fields: { policy: quotas, state: left },
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
  const { reports, fields }: FieldSet = typeof set === 'string' ? sets[set] : prefixed(set.reset)
  const reported = reports(decision)
  if (!reported) return undefined
  const names: Record<string, string> =
    typeof set === 'string' ? fieldNames[set] : prefixedNames(set.prefix)
  const values: FieldValues['fields'] = []
  for (const key in names) {
    const value = fields[key]!(reported, decision)
    if (value !== undefined) values.push([names[key]!, String(value)])
  }
  return { set, fields: values, remaining: remaining(reported) }
}
