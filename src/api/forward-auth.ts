import { HELD_MS } from '../core/base/held.ts'
import { parseAddress } from '../core/base/ip.ts'
import { decideEach } from '../core/decide/decide.ts'
import { observe } from '../core/decide/observed.ts'
import type { Call } from '../core/endpoint.ts'
import { shadowField } from '../core/respond/own-fields.ts'
import { refuse } from '../core/respond/refusal.ts'
import { withDecisionFields } from '../core/respond/response.ts'
import { describedRequest, requestOf } from './described-request.ts'
import { fromFields, fromPath, type InvalidField } from './forwarded.ts'
import { badRequest } from './problems.ts'

/**
 * `/_sluice/v1/auth`: decides whether a reverse proxy may let a request pass. `/nginx` and `/envoy/…` below it are the variants for
 * these proxies; Envoy appends the client's path.
 */
export async function auth(call: Call): Promise<Response> {
  const { request, rules, runtime, parts, config, rest, log, stages } = call
  const described = rest.startsWith('/envoy') ? fromPath(request) : fromFields(request)
  if ('invalidField' in described) return invalid(described, rest)
  const found = await describedRequest(described, rules, runtime)
  if ('expected' in found) return badRequest('The fields do not describe a valid request.')
  const verified = await stages.verify?.(request, runtime.env)
  const matched = verified ? verified.mark(found) : found
  const [outcome] = await decideEach([{ matched, waitMs: HELD_MS }], parts, { ...runtime, request })
  observe(parts, matched, outcome!, described, runtime, verified !== undefined)
  const exact = outcome!.decision
  const decision = (!exact.allowed && stages.told?.(exact)) || exact
  const client = () => requestOf(described, rules.config)
  const isAnswered = decision.allowed && verified?.through === false
  const passes = decision.allowed && !isAnswered
  const answer = decision.allowed
    ? new Response(null, { status: passes ? 200 : NO_APP, headers: noStore })
    : await refuse(decision, withoutBody(request), rules.config, stages, log, () =>
        runtime.contextOf(client()),
      )
  const fields = passes
    ? shadowField(decision)
    : { 'Sluice-Status': String(isAnswered ? 204 : answer.status) }
  const report = verified?.fields(
    outcome!,
    matched,
    { request: client(), address: parseAddress(described.ip ?? '') },
    answer.headers,
  )
  return withDecisionFields(passedOn(answer, { ...fields, ...report }, rest), decision, config)
}

/** Keeps the proxy from asking the app about a request of `sluice verify` that is admitted. Any 2xx would be an admission. */
const NO_APP = 403

/** The answer to a call whose fields describe no request. If the client caused it, it is a refusal that each proxy passes on. */
function invalid({ invalidField, byClient }: InvalidField, rest: string): Response {
  const answer = badRequest(`${invalidField} is missing or invalid.`)
  return byClient ? passedOn(answer, { 'Sluice-Status': String(answer.status) }, rest) : answer
}

/** An answer in the form that the proxy passes on to the client, with more fields. */
function passedOn(
  { body, headers, status }: Response,
  fields: Record<string, string>,
  rest: string,
) {
  const bare = rest === '/nginx' // nginx discards the body of a refusal, and closes the connection if there is one.
  if (bare) headers.delete('Content-Type')
  return new Response(bare ? null : body, {
    status: statusFor(rest, status),
    headers: { ...Object.fromEntries(headers), ...fields },
  })
}

/**
 * Maps the status of a refusal to one that the proxy passes on. nginx turns every refusal except 401 and 403 into a 500. Envoy treats
 * a 5xx as a failure of Sluice. `Sluice-Status` always has the original status.
 */
function statusFor(rest: string, status: number): number {
  const refused = status >= (rest.startsWith('/envoy') ? 500 : 400)
  return refused && rest !== '' ? 403 : status
}

/** Without a body, a refusal has a status of at least 400. The proxy would take another one for an admission. */
const withoutBody = ({ url, headers }: Request) => new Request(url, { headers })

const noStore = { 'Cache-Control': 'no-store' }
