import { refusal, withDecisionFields } from '../http/response.ts'
import { shadowField, wouldRefuse } from '../http/shadow.ts'
import { decideEach } from '../limiter/decide.ts'
import type { Call } from './call.ts'
import { describedRequest } from './described-request.ts'
import { byFields, byPath } from './forwarded.ts'
import { badRequest } from './problems.ts'

/**
 * `/_sluice/v1/auth`: whether a reverse proxy may let a request pass that it tells of. Below it `/nginx`, and `/envoy/…`, which puts
 * the client's path behind ours.
 */
export async function auth(call: Call): Promise<Response> {
  const { request, rules, around, parts, config, rest } = call
  const told = rest.startsWith('/envoy') ? byPath(request) : byFields(request)
  if ('untold' in told) return badRequest(`${told.untold} is missing, or tells nothing.`)
  const matched = await describedRequest(told, rules, around)
  if ('expected' in matched) return badRequest('The fields tell of no request.')
  const [outcome] = await decideEach([{ matched }], parts, { waitUntil: around.waitUntil })
  const { decision } = outcome!
  const answer = decision.allowed ? new Response(null, { headers: noStore }) : refusal(decision)
  const { body, headers } = answer
  const bare = rest === '/nginx' // which throws a refusal's body away, and with it the connection
  if (bare) headers.delete('Content-Type')
  const response = new Response(bare ? null : body, {
    status: statusFor(rest, answer.status),
    headers: {
      ...Object.fromEntries(headers),
      ...(decision.allowed
        ? shadowField(wouldRefuse(decision))
        : { 'Sluice-Status': String(answer.status) }),
    },
  })
  return withDecisionFields(response, decision, config, { own: true })
}

/** nginx makes a 500 of every refusal but 403 (and 401), and Envoy takes a 5xx for our own failure. `Sluice-Status` says what it is in any case. */
function statusFor(rest: string, status: number): number {
  const refused = status >= (rest.startsWith('/envoy') ? 500 : 400)
  return refused && rest !== '' ? 403 : status
}

const noStore = { 'Cache-Control': 'no-store' }
