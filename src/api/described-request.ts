import { type ConfigProblem, show } from '../core/base/errors.ts'
import { parseAddress } from '../core/base/ip.ts'
import { readsBodies } from '../core/config/feature.ts'
import type { Config } from '../core/config/parse.ts'
import type { ApiRuntime } from '../core/endpoint.ts'
import type { Matched, Rules } from '../core/program/match.ts'
import { bodySources } from '../core/request/body-sources.ts'
import { RequestView } from '../core/request/view.ts'
import { dropFields, isOwn } from '../core/respond/own-fields.ts'
import type { RequestDescription } from './schema.ts'

/** Matches a described request, or returns a problem. The headers are a client's, so they cannot set the cost as a trusted proxy can. */
export async function describedRequest(
  description: RequestDescription,
  { config, match }: Rules,
  { env, waitUntil, contextOf }: ApiRuntime,
): Promise<Matched | ConfigProblem> {
  const { ip, country, asn, colo, omitted } = description
  let view: RequestView
  try {
    const request = requestOf(description, config)
    const runtime = { env, waitUntil, context: await contextOf(request) }
    view = new RequestView(request, runtime, config, () => parseAddress(ip ?? ''))
  } catch {
    // The schema accepts the description, but this runtime cannot make a Request of it.
    return { path: 'request', expected: 'a request', got: show(description.url) }
  }
  // The values of the call itself belong to the caller.
  const own = {
    country: country?.toUpperCase(),
    asn: asn === undefined ? undefined : String(asn),
    colo: colo?.toUpperCase(),
    ...(omitted && { omitted }),
  }
  return match(view.with(own))
}

/** Stands for a body that the caller does not describe. It is not JSON, so a client cannot evade a policy. */
const UNKNOWN = ' '

export function requestOf(
  { method = 'GET', url, ip, headers = {}, body, omitted }: RequestDescription,
  config: Pick<Config, 'use'>,
): Request {
  const mayHaveBody = !/^(get|head)$/i.test(method)
  const isUnknown = omitted?.includes('body') || (mayHaveBody && body === undefined)
  const text = isUnknown ? UNKNOWN : body
  const request = new Request(url, {
    method,
    headers: clientHeaders(headers, ip),
    body: (readsBodies(config) && mayHaveBody && text) || null,
  })
  // `Request` accepts no body of a GET. The gateway reads it, because an app may.
  if (!mayHaveBody && text) bodySources.set(request, () => ({ stream: new Response(text).body! }))
  return request
}

/** Removes fields that only Sluice or Cloudflare may set. */
function clientHeaders(described: Record<string, string>, ip: string | undefined): Headers {
  const headers = new Headers(described)
  dropFields(headers, isOwn)
  headers.delete('cf-connecting-ip')
  if (ip !== undefined) headers.set('CF-Connecting-IP', ip)
  return headers
}
