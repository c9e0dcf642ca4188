/** A decision on the wire: header fields and problem documents. */
import type { Decision, Lacking, LimitState } from '../base/decision.ts'
import type { Config } from '../config/parse.ts'
import { merge } from './ratelimit-fields/merge.ts'
import { seconds } from './ratelimit-fields/quantities.ts'
import { tell } from './ratelimit-fields/sets.ts'

/**
 * A response with the fields of a decision in the sets of a configuration, merged with those it has: see `merge`.
 * @param options.own whether the response is one of ours, which can be changed itself. Defaults to false
 * @returns the same response where there is nothing to tell
 */
export function withDecisionFields(
  response: Response,
  decision: Decision,
  { headers: sets, degradedHeader }: Pick<Config, 'headers' | 'degradedHeader'>,
  { own = false } = {},
): Response {
  const told = sets.map((set) => tell(set, decision)).filter((told) => told !== undefined)
  const fallback = degradedHeader ? decision.fallback : undefined
  if (told.length === 0 && !fallback) return response
  const copy = own ? response : new Response(response.body, response) // what fetch returns cannot be changed
  for (const one of told) merge(copy.headers, one)
  if (fallback) copy.headers.set('Sluice-Degraded', fallback)
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

/** `Retry-After` (RFC 9110, 10.2.3): the time before which the same request surely does not pass, where there is one. */
export function retryAfter(decision: Decision): Record<string, string> {
  const waitMs = sureWait(decision)
  return waitMs ? { 'Retry-After': String(seconds(waitMs)) } : {}
}

const isRefusing = ({ mode, allowed }: LimitState) => mode === 'enforce' && !allowed

/**
 * The wait that is sure, in ms. A slot of a limit of concurrent requests is free as soon as a request in flight ends: how long that
 * takes is unknown, and a client that waits for the whole life of a slot waits far too long.
 */
function sureWait({ retryAfterMs, limits }: Decision): number | null {
  const refusing = limits.filter(isRefusing)
  if (retryAfterMs === null || !refusing.some(({ unit }) => unit)) return retryAfterMs
  return Math.max(
    ...refusing.map((limit) => (limit.unit ? limit.bannedForMs : limit.retryAfterMs) ?? 0),
  )
}

const PROBLEM_TYPES = 'https://iana.org/assignments/http-problem-types'

const isBanned = ({ mode, bannedForMs }: LimitState) =>
  mode === 'enforce' && bannedForMs !== undefined

function whyExceeded(decision: Decision): string {
  const { reason, retryAfterMs } = decision
  if (reason === 'shielded') return `Too many requests at once: try again in ${retryAfterMs} ms.`
  if (retryAfterMs === null) return 'This request costs more than the quota can ever hold.'
  return sureWait(decision)! < retryAfterMs
    ? `Too many requests are in flight: this one passes when one of them ends, at the latest in ${retryAfterMs} ms.`
    : `The same request passes in ${retryAfterMs} ms.`
}

function whyDenied({ missing, unreadable, unverified }: Lacking): string {
  if (missing) return `The request lacks ${missing}.`
  if (unreadable) return `The request has no single readable value of ${unreadable}.`
  if (!unverified) return 'The request is on a deny list.'
  return unverified === 'api-key' ? 'The API key is not known.' : 'The token could not be verified.'
}

/**
 * The answer to a refused request: 429 past a limit (or this isolate's share of it, or the shield's), 503 where the store could not answer and a
 * policy says `deny`, 403 for a request that a list denies, or that has no value for what a policy counts by. Nothing that a client sent is in it.
 */
export function refusal(decision: Decision): Response {
  if (decision.reason === 'denied') {
    return problem(403, { title: 'Forbidden', detail: whyDenied(decision.denied ?? {}) })
  }
  if (decision.fallback === 'deny') {
    return problem(503, {
      type: `${PROBLEM_TYPES}#temporary-reduced-capacity`,
      title: 'Temporarily reduced capacity',
      detail: 'The rate limit could not be checked.',
    })
  }
  const { retryAfterMs, limits } = decision
  if (decision.reason === 'banned') {
    const bans = limits.filter(isBanned)
    const rest = Math.max(...bans.map(({ bannedForMs }) => bannedForMs!))
    return problem(
      429,
      {
        type: `${PROBLEM_TYPES}#abnormal-usage-detected`,
        title: 'Abnormal usage detected',
        detail: `Too many requests were refused: none passes for ${rest} ms.`,
        retryAfterMs,
        'violated-policies': bans.map(({ policy }) => policy),
      },
      retryAfter(decision),
    )
  }
  const violated = limits.filter(isRefusing)
  return problem(
    429,
    {
      type: `${PROBLEM_TYPES}#quota-exceeded`,
      title: 'Quota exceeded',
      detail: whyExceeded(decision),
      retryAfterMs,
      // Unknown where the isolate or the shield answered by itself.
      ...(violated.length > 0 && { 'violated-policies': violated.map(({ policy }) => policy) }),
    },
    retryAfter(decision),
  )
}
