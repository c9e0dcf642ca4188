import type { ConfigProblem } from '../base/errors.ts'
import { parseAddress } from '../base/ip.ts'
import type { Config } from '../config/parse.ts'
import { show } from '../config/schema/checked.ts'
import { dropOwnFields } from '../http/own-fields.ts'
import type { Rules } from '../limiter/create.ts'
import type { Matched } from '../match/match.ts'
import { type RequestView, type RuntimeContext, viewOf } from '../request/view.ts'
import type { RequestDescription } from './schema.ts'

/** The runtime of a call. `contextOf` makes the context that key functions get for a described request. */
export interface ApiRuntime extends Omit<RuntimeContext, 'context'> {
  contextOf: (request: Request) => Promise<unknown>
}

/** Matches a described request against the rules. Returns a problem if the description is invalid. */
export async function describedRequest(
  request: RequestDescription,
  { config, match }: Rules,
  runtime: ApiRuntime,
): Promise<Matched | ConfigProblem> {
  let view: RequestView
  try {
    view = await viewOfDescribed(request, runtime, config)
  } catch {
    // The schema accepts the description, but this runtime cannot make a Request of it.
    return { path: 'request', expected: 'a request', got: show(request.url) }
  }
  return match(view)
}

/** Makes the request view. The headers are a client's, so they cannot set the cost as a trusted proxy can. */
async function viewOfDescribed(
  { method = 'GET', url, ip, headers = {}, country, asn, colo }: RequestDescription,
  { env, waitUntil, contextOf }: ApiRuntime,
  config: Config,
): Promise<RequestView> {
  const request = new Request(url, { method, headers: clientHeaders(headers, ip) })
  const context = await contextOf(request)
  // The values of the call itself belong to the caller.
  return viewOf(request, { env, waitUntil, context }, config, {
    address: parseAddress(ip ?? ''),
    country: country?.toUpperCase(),
    asn: asn === undefined ? undefined : String(asn),
    colo: colo?.toUpperCase(),
  })
}

/** Removes fields that only Sluice or Cloudflare may set. */
function clientHeaders(described: Record<string, string>, ip: string | undefined): Headers {
  const headers = new Headers(described)
  dropOwnFields(headers)
  headers.delete('cf-connecting-ip')
  if (ip !== undefined) headers.set('CF-Connecting-IP', ip)
  return headers
}
