import { formatAddress, parseAddress } from '../base/ip.ts'
import { asVerbatim } from '../http/body-end.ts'
import { dropOwnFields } from '../http/own-fields.ts'
import { problem } from '../http/response.ts'
import { shadowField } from '../http/shadow.ts'
import { leavesBase } from '../request/path.ts'

/** Fields that are between two neighbours only (RFC 9110, 7.6.1), and the obsolete ones of the same kind. */
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]

function withoutHopByHop(source: Headers): Headers {
  const headers = new Headers(source)
  const named = source.get('connection')?.split(',') ?? []
  for (const name of [...HOP_BY_HOP, ...named.map((name) => name.trim())]) {
    if (/^[\w!#$%&'*+.^`|~-]+$/.test(name)) headers.delete(name)
  }
  return headers
}

export interface ForwardOptions {
  /** The longest to wait for the answer to begin; its body may take as long as it likes. */
  timeoutMs: number
  /** Ends the exchange, at that time or whenever the caller likes. */
  ending?: AbortController
  /** Names of the policies in shadow that would have refused the request. */
  shadow?: string[]
  /** Puts what is ours to say on an answer that is not the origin's: 502, 504. */
  asOurs?: (answer: Response) => Response
}

/**
 * Sends a request on to an origin and hands back its answer: same method, parsed path, query and body, streamed both ways; redirects untouched.
 * Fields of ours (`Sluice-…`) stay here, but for `Sluice-Shadow`: the policies in shadow that would have refused the request.
 * @param origin an http(s) URL, whose path if any is put before the request's; or `'zone'`, the origin of the zone the Worker is on
 * @returns a 502 problem where the origin cannot be reached, 504 where it does not answer in time
 */
export async function forward(
  request: Request,
  origin: string,
  {
    timeoutMs,
    ending = new AbortController(),
    shadow = [],
    asOurs = (answer) => answer,
  }: ForwardOptions,
): Promise<Response> {
  const { signal } = ending
  const timer = setTimeout(() => ending.abort(), timeoutMs)
  try {
    const outgoing = origin === 'zone' ? forZone(request) : readdress(request, origin)
    replaceOurs(outgoing.headers, shadow)
    const loop = request.headers.get('cdn-loop')
    outgoing.headers.set('CDN-Loop', loop ? `${loop}, sluice` : 'sluice')
    const response = await fetch(outgoing, { redirect: 'manual', signal, ...verbatim })
    if (upgraded(response)) return response
    if (origin === 'zone') return asVerbatim(response)
    const { body, status, statusText } = response
    const headers = withoutHopByHop(response.headers)
    // Throws where the status is one that a response cannot have, such as 600.
    return asVerbatim(new Response(body, { status, statusText, headers, ...verbatim }))
  } catch {
    return asOurs(
      signal.aborted
        ? problem(504, { title: 'Gateway Timeout', detail: 'The origin did not answer in time.' })
        : problem(502, { title: 'Bad Gateway', detail: 'The origin did not answer.' }),
    )
  } finally {
    clearTimeout(timer)
  }
}

/** Words of Workers' own, for request and response: bodies pass as they came, also where something of ours reads along. */
const verbatim = { encodeResponseBody: 'manual', encodeBody: 'manual' } as object

const upgraded = (response: Response) =>
  response.status === 101 && (response as { webSocket?: unknown }).webSocket

/** Fields that claim another path or method than the one that policies matched. */
const REQUEST_CLAIMS = new Set([
  'x-original-url',
  'x-rewrite-url',
  'x-http-method',
  'x-http-method-override',
  'x-method-override',
])

/**
 * Fields that claim another client, host or path prefix. Cloudflare, or a rule of the zone, may set these for the origin of the zone.
 * An origin elsewhere gets `X-Forwarded-For`, `-Host` and `-Proto` from this Worker.
 */
const CLIENT_CLAIMS = new Set([
  'cf-connecting-ipv6', // set by Cloudflare with Pseudo IPv4 only
  'cf-pseudo-ipv4',
  'client-ip',
  'fastly-client-ip',
  'fly-client-ip',
  'forwarded',
  'forwarded-for',
  'proxy-client-ip',
  'true-client-ip',
  'wl-proxy-client-ip',
  'x-appengine-user-ip',
  'x-azure-clientip',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-envoy-external-address',
  'x-envoy-original-path',
  'x-forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-prefix',
  'x-forwarded-proto',
  'x-forwarded-scheme',
  'x-forwarded-server',
  'x-forwarded-ssl',
  'x-forwarded-uri',
  'x-host',
  'x-http-host-override',
  'x-original-forwarded-for',
  'x-original-host',
  'x-original-uri',
  'x-originating-ip',
  'x-real-ip',
  'x-remote-addr',
  'x-remote-ip',
  'x-script-name',
])

/** Removes claims of a client. CGI does not distinguish `_` from `-`, and only a client writes these fields with `_`, in a zone too. */
function dropClaims(headers: Headers, { zone }: { zone: boolean }) {
  for (const name of [...headers.keys()]) {
    const dashed = name.replaceAll('_', '-')
    const respelled = name !== dashed
    const claims =
      REQUEST_CLAIMS.has(dashed) ||
      (CLIENT_CLAIMS.has(dashed) && (respelled || !zone)) ||
      (respelled && dashed.startsWith('cf-'))
    if (claims) headers.delete(name)
  }
}

/** Of a client's, fields of ours speak to us, and to the origin they would speak in our name. */
function replaceOurs(headers: Headers, shadow: string[]) {
  dropOwnFields(headers)
  for (const [name, value] of Object.entries(shadowField(shadow))) headers.set(name, value)
}

function forZone(request: Request): Request {
  const copy = new Request(request)
  dropClaims(copy.headers, { zone: true })
  return copy
}

function readdress(request: Request, origin: string): Request {
  const url = new URL(request.url)
  // The parsed path, which is what policies see: `..` is resolved before the base path stands in front of it. The rest of `href`
  // begins with "/", so it cannot name another host, and keeps a lone "?". (`url.origin` is not always its beginning: workerd passes
  // the Host as it came, `0x7f.1` or `example.com:80`.)
  const target = origin.replace(/\/$/, '') + url.href.replace(/^\w+:\/\/[^/]*/, '')
  const headers = withoutHopByHop(request.headers)
  headers.delete('host') // the origin's own, from the URL
  if (request.headers.get('upgrade')?.toLowerCase() === 'websocket')
    headers.set('Upgrade', 'websocket')
  dropClaims(headers, { zone: false })
  headers.set('X-Forwarded-Host', url.host)
  headers.set('X-Forwarded-Proto', url.protocol.slice(0, -1))
  const client = parseAddress(request.headers.get('cf-connecting-ip') ?? '')
  if (client) headers.set('X-Forwarded-For', formatAddress(client))
  // By way of a copy, which may have a body on GET, as clients do send; `{ method, body }` may not.
  return new Request(new Request(target, request), { headers, redirect: 'manual' })
}

/** How many Workers of this kind may pass one request on. Two or three may stand in a chain; more are a loop. */
const MAX_PASSES = 3

/** How many Workers of this kind have passed a request on, by its `CDN-Loop` field (RFC 8586). Each adds one entry. */
const passesOf = (headers: Headers): number =>
  (headers.get('cdn-loop') ?? '').split(',').filter((entry) => /^\s*sluice\s*(;|$)/i.test(entry))
    .length

/** The problem of a request that must not be forwarded; `undefined` where it may be. */
export function whyNotForward({ url, headers }: Request, origin: string) {
  if (passesOf(headers) >= MAX_PASSES) {
    return {
      status: 508,
      title: 'Loop Detected',
      detail: `${MAX_PASSES} Sluice Workers have passed this request on already, so the origin leads back to this Worker: set origin in sluice.config.ts, or the variable ORIGIN, to the server behind it.`,
    }
  }
  const hasBase = origin !== 'zone' && new URL(origin).pathname !== '/'
  if (hasBase && leavesBase(new URL(url).pathname)) {
    return {
      status: 400,
      title: 'Bad Request',
      detail:
        'The path leaves the base path of the origin once it is decoded: send it with ".." resolved.',
    }
  }
  return undefined
}

/** Why `'zone'` cannot work for this request, or `undefined` where it can. */
export function noZone(request: Request): string | undefined {
  const { hostname } = new URL(request.url)
  return /(^|\.)(workers\.dev|localhost)$|^[\d.]+$|^\[/.test(hostname)
    ? `origin 'zone' needs a route on a zone, and ${hostname} is none: set origin in sluice.config.ts, or the variable ORIGIN, to a URL`
    : undefined
}
