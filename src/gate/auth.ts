import { decideEach } from '../limiter.ts'
import { refusal, withDecisionFields } from '../response.ts'
import { shadowField, wouldRefuse } from '../shadow.ts'
import type { Call } from './call.ts'
import { describedRequest } from './described.ts'
import { badRequest } from './problems.ts'
import { byFields, byPath } from './told.ts'

/**
 * `/_sluice/v1/auth`: whether a reverse proxy may let a request pass that it tells of. Below it `/nginx`, whose `auth_request` knows
 * no refusal but 403, and `/envoy/…`, whose `ext_authz` puts the client's path behind ours.
 */
export async function auth(call: Call): Promise<Response> {
  const { request, rules, around, parts, config, rest } = call
  const told = rest.startsWith('/envoy')
    ? byPath(request, '/_sluice/v1/auth/envoy')
    : byFields(request)
  if ('untold' in told) return badRequest(`${told.untold} is missing, or tells nothing.`)
  const description = await describedRequest(told, rules, around)
  if ('expected' in description) return badRequest('The fields tell of no request.')
  const [outcome] = await decideEach([{ description }], parts)
  const { decision } = outcome!
  const own = !decision.allowed
  const answer = own ? refusal(decision) : new Response(null, { headers: noStore })
  const forNginx = own && rest === '/nginx'
  const response = new Response(answer.body, {
    status: forNginx ? 403 : answer.status,
    headers: {
      ...Object.fromEntries(answer.headers),
      ...(forNginx && { 'Sluice-Status': String(answer.status) }),
      ...shadowField(own ? [] : wouldRefuse(decision)),
    },
  })
  return withDecisionFields(response, decision, config)
}

const noStore = { 'Cache-Control': 'no-store' }
