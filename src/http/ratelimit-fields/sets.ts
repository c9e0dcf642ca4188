import type { Decision, LimitState } from '../../base/decision.ts'
import type { HeaderSet } from '../../config/schema/headers.ts'
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

interface Field {
  name: string
  /** Several limits, an item each. Defaults to the one that the set reports. */
  lists?: (decision: Decision) => LimitState[]
  item: Quantity
}
interface FieldSet {
  /** The limit whose state is told. */
  reports: (decision: Decision) => LimitState | undefined
  fields: Field[]
}

const enforced = ({ limits }: Decision) => limits.filter(({ mode }) => mode === 'enforce')

/** The enforced limit that comes first by `rank`, and among equals last by `wait`; on a refusal the one that refuses longest, whose wait is Retry-After. */
const nearest =
  (rank: (limit: LimitState) => number, wait: (limit: LimitState) => number) =>
  (decision: Decision): LimitState | undefined => {
    const refusing = ({ retryAfterMs }: LimitState) => -(retryAfterMs ?? Number.POSITIVE_INFINITY)
    const by = decision.allowed ? rank : refusing
    return enforced(decision)
      .filter(({ allowed }) => allowed === decision.allowed)
      .toSorted((a, b) => by(a) - by(b) || wait(b) - wait(a))[0]
  }

/** Nearest to exhaustion: the least is left of its own quota. */
const leastShare = nearest(
  ({ remaining, limit }) => remaining / limit,
  ({ nextAfterMs }) => nextAfterMs,
)
/** "The lower remaining" (draft-6 and draft-7, "Server Behavior"): fields that name no policy have to be true of all. */
const leastLeft = nearest(
  ({ remaining }) => remaining,
  ({ resetAfterMs }) => resetAfterMs,
)

/**
 * What draft-6 and draft-7 can list: `w` is required, and "two quota policies MUST NOT be associated with the same quota units",
 * of which the longest window, the strictest, stays.
 */
function distinctQuotas(decision: Decision): LimitState[] {
  const said = enforced(decision).filter((state) => window(state) !== undefined)
  const byWindow = said.toSorted((a, b) => a.windowMs - b.windowMs)
  const strictest = new Map(byWindow.map((state) => [limit(state), state]))
  return said.filter((state) => strictest.get(limit(state)) === state)
}

/** `head;name=value;…`, without what there is no word for. */
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

/** `name=value, …` */
const dictionary =
  (members: Record<string, Quantity>): Quantity =>
  (...about) =>
    Object.entries(members)
      .map(([name, quantity]) => `${name}=${quantity(...about)}`)
      .join(', ')

const name: Quantity = ({ policy }) => quoted(policy)
const oldPolicies: Field = {
  name: 'RateLimit-Policy',
  lists: distinctQuotas,
  item: item(limit, { w: window }),
}

/**
 * The fields of each set, as data, so that the next draft is a change of data. `draft-n` is
 * draft-ietf-httpapi-ratelimit-headers-n: Structured Fields (RFC 9651; RFC 8941 before draft-8).
 * https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/
 * https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api
 */
const sets: Record<HeaderSet & string, FieldSet> = {
  'draft-11': {
    reports: leastShare,
    fields: [
      {
        name: 'RateLimit-Policy',
        lists: enforced,
        item: item(name, { q: limit, qu: unit, w: window }),
      },
      { name: 'RateLimit', item: item(name, { r: remaining, t: untilMore }) },
    ],
  },
  'draft-7': {
    reports: leastLeft,
    fields: [
      oldPolicies,
      { name: 'RateLimit', item: dictionary({ limit, remaining, reset: untilReset }) },
    ],
  },
  'draft-6': {
    reports: leastLeft,
    fields: [
      oldPolicies,
      { name: 'RateLimit-Limit', item: limit },
      { name: 'RateLimit-Remaining', item: remaining },
      { name: 'RateLimit-Reset', item: untilReset },
    ],
  },
  github: {
    reports: leastLeft,
    fields: [
      { name: 'x-ratelimit-limit', item: limit },
      { name: 'x-ratelimit-remaining', item: remaining },
      { name: 'x-ratelimit-used', item: used },
      { name: 'x-ratelimit-reset', item: fullAt },
      { name: 'x-ratelimit-resource', item: policy },
    ],
  },
}

const resets = { epoch: fullAt, delta: untilFull, iso: fullAtIso }
const prefixed = ({ prefix, reset }: HeaderSet & object): FieldSet => ({
  reports: leastLeft,
  fields: [
    { name: `${prefix}Limit`, item: limit },
    { name: `${prefix}Remaining`, item: remaining },
    { name: `${prefix}Reset`, item: resets[reset] },
  ],
})

/** A decision in the words of a set. */
export interface Told {
  set: HeaderSet
  fields: [name: string, value: string][]
  /** What a client reads as left. */
  remaining: number
}

/** What a set says of a decision; nothing where there is no number to tell. */
export function tell(set: HeaderSet, decision: Decision): Told | undefined {
  const { reports, fields } = typeof set === 'string' ? sets[set] : prefixed(set)
  const reported = reports(decision)
  if (!reported) return undefined
  return {
    set,
    fields: fields.flatMap(({ name, lists, item }): [string, string][] => {
      const items = (lists?.(decision) ?? [reported]).map((limit) => item(limit, decision))
      return items.length > 0 ? [[name, items.join(', ')]] : []
    }),
    remaining: remaining(reported),
  }
}
