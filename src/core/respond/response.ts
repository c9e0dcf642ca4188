import type { Decision, Lacking, LimitState } from '../base/decision.ts'
import { waitText } from '../base/duration.ts'
import { Recent } from '../base/recent.ts'
import type { Config } from '../config/parse.ts'
import { withCors } from './cors.ts'
import { withChanged } from './own-fields.ts'
import { merge } from './ratelimit-fields/merge.ts'
import { SLOTS, seconds, setOf } from './ratelimit-fields/sets.ts'

/** Adds the fields of a decision to a response, in the configured sets, merged with existing fields. */
export function withDecisionFields(
  response: Response,
  decision: Decision,
  { headers: sets }: Pick<Config, 'headers'>,
): Response {
  if (decision.limits.length === 0) return response
  return withChanged(response, (headers) => {
    for (const set of sets) merge(headers, setOf(set), decision)
  })
}

/** All that a response of a limiter gets: the fields of a decision, and those that let the page, as of `withCors`, read them. */
export const withFields = (
  response: Response,
  decision: Decision,
  config: Pick<Config, 'headers' | 'cors'>,
  page?: string | null,
): Response => withCors(withDecisionFields(response, decision, config), config, page)

/** The fields of a decision, for a response that has none yet. */
export function decisionFields(decision: Decision, { headers: sets }: Pick<Config, 'headers'>) {
  const fields: Record<string, string> = {}
  for (const set of sets)
    for (const [name, value] of setOf(set).valuesFor(decision)?.fields ?? []) fields[name] = value
  return fields
}

type FieldsByName = Record<string, string>

/** Makes a problem document (RFC 9457). */
export const problem = (
  status: number,
  members: { type?: string; title: string; detail?: string } & Record<string, unknown>,
  headers: FieldsByName = {},
): Response => respond(status, JSON.stringify({ type: 'about:blank', status, ...members }), headers)

/** Makes a JSON answer that no cache stores. */
export const jsonAnswer = (body: unknown, headers: FieldsByName = {}, status = 200): Response =>
  Response.json(body, { status, headers: { 'Cache-Control': 'no-store', ...headers } })

function respond(status: number, document: string, fields: FieldsByName, waitMs?: number | null) {
  const all: FieldsByName = {
    'Content-Type': 'application/problem+json',
    'Cache-Control': 'no-store',
    ...(waitMs && { 'Retry-After': `${seconds(waitMs)}` }),
    ...fields,
  }
  const headers = keptHeaders(all)
  const answer = new Response(document, { status, headers })
  // The `Response` of `@hono/node-server`, which may be the global one, does not copy its headers.
  return answer.headers === headers ? new Response(document, { status, headers: all }) : answer
}

/** The headers of recent problem documents: those of refusals change once a second. workerd takes 3 µs for each field, 5 µs for a copy. */
const recent = new Recent<Headers>(100)

/** Headers that no caller may change. The value of a field has no line end. */
function keptHeaders(fields: FieldsByName): Headers {
  let key = ''
  for (const name in fields) key += `${name}\n${fields[name]}\n`
  const kept = recent.get(key)
  if (kept) return kept
  const headers = new Headers(fields)
  recent.set(key, headers)
  return headers
}

/** `Retry-After` (RFC 9110, 10.2.3): the time before which the same request cannot pass. No field if that time is 0 or unknown. */
export function retryAfter(decision: Decision): FieldsByName {
  const waitMs = minimumWait(decision)
  return waitMs ? { 'Retry-After': `${seconds(waitMs)}` } : {}
}

const hasSlots = ({ unit }: LimitState) => unit === SLOTS
const isRefusing = ({ mode, allowed }: LimitState) => mode === 'enforce' && !allowed

/** The minimum wait in ms, without those for a slot: it is released when a request in flight ends, usually much earlier than it expires. */
function minimumWait({ retryAfterMs, limits }: Decision): number | null {
  const refusing = limits.filter(isRefusing)
  if (retryAfterMs === null || !refusing.some(hasSlots)) return retryAfterMs
  return Math.max(
    ...refusing.map((limit) => (hasSlots(limit) ? limit.bannedForMs : limit.retryAfterMs) ?? 0),
  )
}

const PROBLEM_TYPES = 'https://iana.org/assignments/http-problem-types'

const isBanned = ({ mode, bannedForMs }: LimitState) =>
  mode === 'enforce' && bannedForMs !== undefined

function whyExceeded({ reason, limits, retryAfterMs }: Decision, waitMs: number | null): string {
  if (reason === 'shielded')
    return `Too many requests at once. Try again in ${waitText(retryAfterMs!)}.`
  if (retryAfterMs === null)
    return limits.some(isRefusing)
      ? 'This request costs more than the quota can ever hold.'
      : 'Too many requests are waiting.'
  return waitMs! < retryAfterMs
    ? `Too many requests are in flight. Try again when one of them ends, or in ${waitText(retryAfterMs)}.`
    : `Try again in ${waitText(retryAfterMs)}.`
}

/** A client does not know a function of the app: the part is its key. */
function whyDenied({ missing, unreadable, unverified }: Lacking): string {
  if (missing)
    return `The request ${missing === 'function' ? 'has no client key' : `lacks ${missing}`}.`
  if (unreadable)
    return `The request has no single readable value of ${unreadable === 'function' ? 'its client key' : unreadable}.`
  if (!unverified) return 'The request is on a deny list.'
  return unverified === 'api-key' ? 'The API key is not known.' : 'The token could not be verified.'
}

/**
 * Makes the response to a refused request. It contains no data of the client. The status is
 * - 429 if the request exceeds a limit, the isolate's share of a limit, or the shield,
 * - 503 if the store gave no answer and `onStoreError` of a policy is `deny`,
 * - 403 if a list denies the request, or if it lacks a value of a policy's key.
 * @param fields further header fields. Defaults to none
 */
export function refusal(decision: Decision, fields: FieldsByName = {}): Response {
  if (decision.reason === 'denied') {
    const detail = whyDenied(decision.denied ?? {})
    return problem(403, { title: 'Forbidden', detail }, fields)
  }
  if (decision.fallback === 'deny') {
    const type = `${PROBLEM_TYPES}#temporary-reduced-capacity`
    const detail = 'The rate limit could not be checked.'
    return problem(503, { type, title: 'Temporarily reduced capacity', detail }, fields)
  }
  const waitMs = minimumWait(decision)
  return respond(429, documentOf(decision, waitMs), fields, waitMs)
}

/** The problem document of a refusal with 429. `JSON.stringify` of all of it would take a tenth of the refusal. */
function documentOf(decision: Decision, waitMs: number | null): string {
  const { reason, limits, retryAfterMs } = decision
  const isBan = reason === 'banned'
  const violated = limits.filter(isBan ? isBanned : isRefusing)
  const type = isBan ? 'abnormal-usage-detected' : 'quota-exceeded'
  const title = isBan ? 'Abnormal usage detected' : 'Quota exceeded'
  const detail = isBan ? whyBanned(violated) : whyExceeded(decision, waitMs)
  const names = violated.map(({ policy }) => JSON.stringify(policy))
  // Unknown if the isolate or the shield refused the request.
  const policies = names.length > 0 ? `,"violated-policies":[${names}]` : ''
  return `{"type":"${PROBLEM_TYPES}#${type}","status":429,"title":"${title}","detail":"${detail}","retryAfterMs":${retryAfterMs}${policies}}`
}

function whyBanned(bans: LimitState[]): string {
  const rest = Math.max(...bans.map(({ bannedForMs }) => bannedForMs!))
  return `All requests are refused for another ${waitText(rest)}.`
}
