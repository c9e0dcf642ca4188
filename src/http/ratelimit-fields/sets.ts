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

/** A quantity of the limit that the set reports; or an item for each of several limits. */
type Field = Quantity | { lists: (decision: Decision) => LimitState[]; item: Quantity }

interface FieldSet<Name extends string = string> {
  /** The limit whose state is told. */
  reports: (decision: Decision) => LimitState | undefined
  fields: Record<Name, Field>
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
const oldPolicies: Field = { lists: distinctQuotas, item: item(limit, { w: window }) }

/**
 * The fields of each set, as data, so that the next draft is a change of data. `draft-n` is
 * draft-ietf-httpapi-ratelimit-headers-n: Structured Fields (RFC 9651; RFC 8941 before draft-8).
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

/** A decision in the words of a set. */
export interface Told {
  set: HeaderSet
  fields: [name: string, value: string][]
  /** What a client reads as left. */
  remaining: number
}

/** What a set says of a decision; nothing where there is no number to tell. */
export function tell(set: HeaderSet, decision: Decision): Told | undefined {
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
