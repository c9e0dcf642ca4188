/** A decision on the wire: header fields and problem documents. */
import type { Decision, LimitState } from './decision.ts'

const seconds = (milliseconds: number) => Math.ceil(milliseconds / 1000)

type Parameter = [
  name: string,
  value: (limit: LimitState, decision: Decision) => number | undefined,
]
interface Field {
  name: string
  parameters: Parameter[]
  /** Which limits it lists. */
  lists: (decision: Decision) => LimitState[]
}

/**
 * The fields of each draft, as data, so that the next draft is a change of data.
 * draft-11: draft-ietf-httpapi-ratelimit-headers-11; Structured Fields (RFC 9651), Lists of Strings with Integer parameters.
 */
const drafts: Record<'draft-11', Field[]> = {
  'draft-11': [
    {
      name: 'RateLimit-Policy',
      parameters: [
        ['q', ({ limit }) => limit],
        // The draft has no window below a second or between two: then it is left out.
        ['w', ({ windowMs }) => (windowMs % 1000 === 0 ? windowMs / 1000 : undefined)],
      ],
      lists: ({ limits }) => limits.filter(({ mode }) => mode === 'enforce'),
    },
    {
      name: 'RateLimit',
      parameters: [
        ['r', ({ remaining }) => remaining],
        [
          't',
          ({ nextAfterMs }, { retryAfterMs }) =>
            seconds(retryAfterMs ? Math.min(nextAfterMs, retryAfterMs) : nextAfterMs),
        ],
      ],
      lists: (decision) => [nearest(decision)].filter((limit) => limit !== undefined),
    },
  ],
}

/** The enforced limit nearest to exhaustion; on a refusal, the one that refuses longest. */
function nearest({ limits, allowed }: Decision): LimitState | undefined {
  const enforced = limits.filter((limit) => limit.mode === 'enforce' && limit.allowed === allowed)
  const rank = allowed
    ? ({ remaining, limit }: LimitState) => remaining / limit
    : ({ retryAfterMs }: LimitState) => -(retryAfterMs ?? Number.POSITIVE_INFINITY)
  return enforced.toSorted((a, b) => rank(a) - rank(b) || b.nextAfterMs - a.nextAfterMs)[0]
}

/** The largest sf-integer (RFC 9651, 3.3.1). */
const MAX_SF_INTEGER = 999_999_999_999_999

/** An sf-string (RFC 9651, 4.1.6). */
const string = (text: string) => `"${text.replace(/[\\"]/g, '\\$&')}"`

/** The `RateLimit` fields of a decision; none where there is no number to tell. */
export function rateLimitFields(decision: Decision): [name: string, value: string][] {
  return drafts['draft-11'].flatMap(({ name, parameters, lists }): [string, string][] => {
    const items = lists(decision).map((limit) =>
      parameters.reduce((item, [parameter, value]) => {
        const number = value(limit, decision)
        return number === undefined
          ? item
          : `${item};${parameter}=${Math.min(number, MAX_SF_INTEGER)}`
      }, string(limit.policy)),
    )
    return items.length > 0 ? [[name, items.join(', ')]] : []
  })
}

/** A response with the fields of a decision added to those it has: an origin's own of the same draft stay. */
export function withDecisionFields(
  response: Response,
  decision: Decision,
  { degradedField = false } = {},
): Response {
  const fields = rateLimitFields(decision)
  if (degradedField && decision.degraded) fields.push(['Sluice-Degraded', decision.degraded])
  if (fields.length === 0) return response
  const copy = new Response(response.body, response) // what fetch returns cannot be changed
  for (const [name, value] of fields) {
    // An older draft's field (`limit=10, …`) beside ours would be a list that nobody can parse: the nearer limiter's stays.
    const theirs = copy.headers.get(name)
    if (theirs?.trimStart().startsWith('"')) copy.headers.append(name, value)
    else copy.headers.set(name, value)
  }
  return copy
}

/** A problem document (RFC 9457). */
export function problem(
  status: number,
  members: { type?: string; title: string; detail?: string } & Record<string, unknown>,
  headers: Record<string, string> = {},
): Response {
  return Response.json(
    { type: 'about:blank', status, ...members },
    {
      status,
      headers: {
        'Content-Type': 'application/problem+json',
        'Cache-Control': 'no-store',
        ...headers,
      },
    },
  )
}

const PROBLEM_TYPES = 'https://iana.org/assignments/http-problem-types'

/** The answer to a refused request: 429 past a limit (or this isolate's share of it), 503 where the store could not answer and a policy says `deny`. */
export function refusal(decision: Decision): Response {
  if (decision.degraded === 'deny') {
    return problem(503, {
      type: `${PROBLEM_TYPES}#temporary-reduced-capacity`,
      title: 'Temporarily reduced capacity',
      detail: 'The rate limit could not be checked.',
    })
  }
  const { retryAfterMs, limits } = decision
  const violated = limits.filter(({ mode, allowed }) => mode === 'enforce' && !allowed)
  return problem(
    429,
    {
      type: `${PROBLEM_TYPES}#quota-exceeded`,
      title: 'Quota exceeded',
      detail:
        retryAfterMs === null
          ? 'This request costs more than the quota can ever hold.'
          : `The same request passes in ${retryAfterMs} ms.`,
      retryAfterMs,
      // Unknown where the isolate answered by itself.
      ...(violated.length > 0 && { 'violated-policies': violated.map(({ policy }) => policy) }),
    },
    retryAfterMs === null ? {} : { 'Retry-After': String(seconds(retryAfterMs)) },
  )
}
