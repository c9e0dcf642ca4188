import type { Decision, FieldSet, LimitState } from '../../base/decision.ts'

/** The value of a field or parameter for a limit; `undefined` if it cannot express the value. */
export type Quantity = (limit: LimitState, decision: Decision) => number | string | undefined

/** Rounds up to whole seconds, so that no client retries too early. */
export const seconds = (milliseconds: number) => Math.ceil(milliseconds / 1000)

/** The largest sf-integer (RFC 9651, 3.3.1). */
const MAX_SF_INTEGER = 999_999_999_999_999

export const limit = (state: LimitState) => Math.min(state.limit, MAX_SF_INTEGER)
export const remaining = (state: LimitState) => Math.min(state.remaining, MAX_SF_INTEGER)
/** The unit of quotas without a time window. */
export const SLOTS = 'concurrent-requests'

/** Window in seconds; `undefined` if it is not whole seconds, which no draft can express. */
export const window = ({ windowMs, unit }: LimitState) =>
  unit !== SLOTS && windowMs % 1000 === 0 ? Math.min(windowMs / 1000, MAX_SF_INTEGER) : undefined

/** Seconds until `remaining` next grows; on a refusal at most Retry-After, as draft-11 requires ("Server Behavior"). None for slots. */
const untilMore: Quantity = ({ nextAfterMs, unit }, { retryAfterMs }) =>
  unit === SLOTS
    ? undefined
    : seconds(retryAfterMs ? Math.min(nextAfterMs, retryAfterMs) : nextAfterMs)

/** Selects the enforced limit with the lowest `rank`, of equals that with the longest `wait`; on a refusal the one that refuses longest. */
export const nearest =
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

/** The smallest remaining share of a quota. */
export const leastShare = nearest(
  ({ remaining, limit }) => remaining / limit,
  ({ nextAfterMs }) => nextAfterMs,
)
/** The list of the quotas, as draft-11 writes it, each policy once. Policy names need no escaping in an sf-string (RFC 9651, 3.3.3). */
const quotas: Quantity = (_, { limits }) => {
  let text = ''
  for (const one of limits) {
    const name = `"${one.policy}"`
    if (one.mode !== 'enforce' || text.includes(name)) continue
    const w = window(one)
    const qu = one.unit ? `;qu="${one.unit}"` : ''
    text += `${text && ', '}${name};q=${limit(one)}${qu}${w === undefined ? '' : `;w=${w}`}`
  }
  return text || undefined
}

/** What is left of a quota, as draft-11 writes it. */
const left: Quantity = (state, decision) => {
  const t = untilMore(state, decision)
  return `"${state.policy}";r=${remaining(state)}${t === undefined ? '' : `;t=${t}`}`
}

/** Makes a set of fields by their names. They report the limit that `reports` selects; one without a value is left out. */
export function fieldSet(
  reports: (decision: Decision) => LimitState | undefined,
  quantities: Record<string, Quantity>,
  remainingIn?: FieldSet['remainingIn'],
  companions: readonly string[] = [],
): FieldSet {
  const entries = Object.entries(quantities)
  return {
    names: Object.keys(quantities),
    remainingIn,
    companions,
    valuesFor(decision) {
      const reported = reports(decision)
      if (!reported) return undefined
      const fields: [name: string, value: string][] = []
      for (const [name, quantity] of entries) {
        const value = quantity(reported, decision)
        if (value !== undefined) fields.push([name, String(value)])
      }
      return { fields, remaining: remaining(reported) }
    },
  }
}

/**
 * The fields of draft-ietf-httpapi-ratelimit-headers-11, in Structured Fields (RFC 9651).
 * https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/
 */
export const draft11 = fieldSet(leastShare, { 'RateLimit-Policy': quotas, RateLimit: left })

export const setOf = (set: 'draft-11' | FieldSet) => (set === 'draft-11' ? draft11 : set)
