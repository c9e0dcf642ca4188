import type { ConfigProblem } from '../base/errors.ts'
import { parseAddress } from '../base/ip.ts'
import type { Config } from '../config/parse.ts'
import { show } from '../config/schema/checked.ts'
import { dropOwnFields } from '../http/own-fields.ts'
import type { Rules } from '../limiter/create.ts'
import type { Matched } from '../match/match.ts'
import { type RequestView, type RuntimeContext, viewOf } from '../request/view.ts'
import type { RequestDescription } from './schema.ts'

/** What the runtime gives along with a call, and how a described request comes by a context of its own, for key functions. */
export interface ApiRuntime extends Omit<RuntimeContext, 'context'> {
  contextOf: (request: Request) => Promise<unknown>
}

/** What the rules make of a described request, or what is wrong with the description. */
export async function describedRequest(
  request: RequestDescription,
  { config, match }: Rules,
  around: ApiRuntime,
): Promise<Matched | ConfigProblem> {
  let view: RequestView
  try {
    view = await viewOfDescribed(request, around, config)
  } catch {
    // What the schema lets pass, and this runtime makes no request of.
    return { path: 'request', expected: 'a request', got: show(request.url) }
  }
  return match(view)
}

/** Nothing in it is a trusted proxy's word on a price: its headers are a client's. */
async function viewOfDescribed(
  { method = 'GET', url, ip, headers = {}, country, asn, colo }: RequestDescription,
  { env, waitUntil, contextOf }: ApiRuntime,
  config: Config,
): Promise<RequestView> {
  const request = new Request(url, { method, headers: ofClient(headers, ip) })
  const context = await contextOf(request)
  return {
    ...viewOf(request, { env, waitUntil, context }, config),
    // The client's, not those of whoever calls.
    address: parseAddress(ip ?? ''),
    country: country?.toUpperCase(),
    asn: asn === undefined ? undefined : String(asn),
    colo: colo?.toUpperCase(),
  }
}

/** Without what would speak in our name, or in Cloudflare's. */
function ofClient(described: Record<string, string>, ip: string | undefined): Headers {
  const headers = new Headers(described)
  dropOwnFields(headers)
  headers.delete('cf-connecting-ip')
  if (ip !== undefined) headers.set('CF-Connecting-IP', ip)
  return headers
}
