import { type Address, formatAddress } from '../../core/base/ip.ts'
import type { CheckedRequest } from '../../core/decided-request.ts'
import { cgiName } from '../../core/request/names.ts'
import { leavesBase } from '../../core/request/path.ts'
import { knownAddress } from '../../core/request/view.ts'
import { asVerbatim, IdentityTransformStream } from '../../core/respond/body-end.ts'
import { dropFields, isOwn, shadowField } from '../../core/respond/own-fields.ts'
import { problem } from '../../core/respond/response.ts'

/** Hop-by-hop fields (RFC 9110, 7.6.1), including obsolete ones. */
const HOP_BY_HOP =
  /^(connection|keep-alive|proxy-(authenticate|authorization|connection)|te|trailer|transfer-encoding|upgrade)$/

/** Tells the hop-by-hop fields of a message, with those that its field `Connection` names. */
function hopByHopIn(headers: Headers): (name: string) => boolean {
  const named = headers.get('connection')?.toLowerCase().split(',')
  const further = new Set(named?.map((name) => name.trim()))
  return (name) => HOP_BY_HOP.test(name) || further.has(name)
}

/**
 * Forwards an admitted request to an origin and returns the response. Keeps the method, the parsed path, the query and the body; streams
 * both bodies; does not follow redirects. Removes the `Sluice-*` fields of the client, and names the shadow policies that would have refused.
 * @param origin an http(s) URL, whose path is put before the path of the request; or `'zone'`, the origin of the Worker's zone
 * @param timeoutMs the time limit for the response headers, in ms. The body has no time limit
 * @param finishProblem finishes a response that does not come from the origin: 502 if it cannot be reached, 504 if it does not answer in
 *   time, 400 if the chunks of the body are malformed
 */
export async function forward(
  { decision, view, isRead }: CheckedRequest,
  origin: string,
  timeoutMs: number,
  finishProblem: (answer: Response) => Response,
): Promise<Response> {
  const { request } = view
  const abort = new AbortController()
  const { signal } = abort
  const timer = setTimeout(() => abort.abort(), timeoutMs)
  let isBroken = false
  const onBroken = () => {
    isBroken = true
    abort.abort()
  }
  try {
    const isChunked = request.headers.has('transfer-encoding')
    const sent = isChunked ? withWatchedChunks(request, onBroken) : request
    const outgoing = origin === 'zone' ? forZone(sent) : readdress(sent, origin, knownAddress(view))
    for (const [name, value] of Object.entries(shadowField(decision)))
      outgoing.headers.set(name, value)
    // The limiter reads the cost in a body without compression.
    if (isRead) outgoing.headers.set('accept-encoding', 'identity')
    const loop = request.headers.get('cdn-loop')
    outgoing.headers.set('CDN-Loop', loop ? `${loop}, sluice` : 'sluice')
    const response = await fetch(outgoing, { redirect: 'manual', signal, ...verbatim })
    if (response.status === 101 && (response as { webSocket?: unknown }).webSocket) return response
    if (origin === 'zone') return asVerbatim(response)
    // Throws if the status is not allowed in a Response, such as 600. The copy is as verbatim as the response.
    const answer = new Response(response.body, response)
    dropFields(answer.headers, hopByHopIn(answer.headers))
    return asVerbatim(answer)
  } catch {
    const detail = 'The body of the request ends early, or its chunks are malformed.'
    if (isBroken) return finishProblem(problem(400, { title: 'Bad Request', detail }))
    return finishProblem(
      signal.aborted
        ? problem(504, { title: 'Gateway Timeout', detail: 'The origin did not answer in time.' })
        : problem(502, { title: 'Bad Gateway', detail: 'The origin did not answer.' }),
    )
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Returns the request with a body in chunks that passes through a stream of this Worker, because the error of `fetch` does not tell
 * chunks that cannot be read from a failure of the origin.
 * @param onBroken ends the exchange. The stream then has no end, or the origin would read the part before as the whole body
 */
function withWatchedChunks(request: Request, onBroken: () => void): Request {
  const { body } = request
  if (!body) return request
  const { readable, writable } = new IdentityTransformStream()
  body.pipeTo(writable, { preventAbort: true, preventCancel: true }).catch(() => {
    const reader = body.getReader()
    reader.closed.catch(onBroken) // stays open if the origin has failed
    reader.cancel().catch(() => {})
  })
  return new Request(request, { body: readable, duplex: 'half' } as RequestInit)
}

/** Options of the Workers runtime for requests and responses: bodies pass unchanged, even through a stream of this Worker. */
const verbatim = { encodeResponseBody: 'manual', encodeBody: 'manual' } as object

/** Fields that claim a path or method other than the one that policies matched. */
const REQUEST_CLAIMS = /^x-(original-url|rewrite-url|http-method|(http-)?method-override)$/

/**
 * Fields that claim another client, host or path prefix. Cloudflare or a rule of the zone may set them for the origin of the zone.
 * Any other origin gets `X-Forwarded-For`, `-Host` and `-Proto` from this Worker.
 */
const CLIENT_CLAIMS = new RegExp(
  [
    'cf-(connecting-ipv6|pseudo-ipv4)', // Cloudflare sets them with Pseudo IPv4 only.
    '((fastly|fly|proxy|true|wl-proxy|x|x-cluster)-)?client-ip',
    'x-(appengine-user|originating|real|remote)-ip',
    'x-(azure-clientip|envoy-external-address|remote-addr)',
    '(x-)?forwarded(-for)?',
    'x-forwarded-(host|port|prefix|proto|scheme|server|ssl|uri)',
    'x-original-(forwarded-for|host|uri)',
    'x-(envoy-original-path|host|http-host-override|script-name)',
  ]
    .map((names) => `^${names}$`)
    .join('|'),
)

/**
 * Reports whether the origin must not get a field: one that claims something about the request, or a `Sluice-*` field, which it would
 * trust. CGI does not distinguish `_` from `-`, and only clients send these names with `_` or `.`.
 */
function isClaim(name: string, { zone }: { zone: boolean }): boolean {
  const dashed = cgiName(name)
  const respelled = name !== dashed
  return (
    REQUEST_CLAIMS.test(dashed) ||
    (CLIENT_CLAIMS.test(dashed) && (respelled || !zone)) ||
    (respelled && dashed.startsWith('cf-')) ||
    isOwn(name)
  )
}

/** True if a request opens a WebSocket. workerd sends it as a GET without a body (RFC 6455, 4.1), so policies must have matched a GET. */
const opensWebSocket = ({ method, headers }: Request) =>
  method === 'GET' && headers.get('upgrade')?.toLowerCase() === 'websocket'

function forZone(request: Request): Request {
  // The parsed URL, as policies do: workerd keeps `%2e%2e` and `\\` in the URL of a request, and origins resolve them.
  const copy = new Request(new URL(request.url).href, request)
  if (!opensWebSocket(request)) copy.headers.delete('upgrade')
  dropFields(copy.headers, (name) => isClaim(name, { zone: true }))
  return copy
}

function readdress(request: Request, origin: string, client: Address | undefined): Request {
  const url = new URL(request.url)
  // Uses the parsed path, as policies do: `..` is resolved before the base path is added. The rest of `href` begins with "/", so it
  // cannot name another host, and it keeps a "?" with no query. (`href` does not always begin with `url.origin`: workerd keeps a Host
  // such as `0x7f.1` or `example.com:80`.)
  const target = origin.replace(/\/$/, '') + url.href.replace(/^\w+:\/\/[^/]*/, '')
  // A copy may have a body on GET, which some clients send; `{ method, body }` may not.
  const copy = new Request(target, request)
  const { headers } = copy
  const isHopByHop = hopByHopIn(headers)
  // fetch sets `host` from the URL.
  dropFields(
    headers,
    (name) => name === 'host' || isHopByHop(name) || isClaim(name, { zone: false }),
  )
  if (opensWebSocket(request)) headers.set('Upgrade', 'websocket')
  headers.set('X-Forwarded-Host', url.host)
  headers.set('X-Forwarded-Proto', url.protocol.slice(0, -1))
  if (client) headers.set('X-Forwarded-For', formatAddress(client))
  return copy
}

/** The maximum number of Sluice Workers that may forward one request. A chain of two or three is allowed; more indicate a loop. */
const MAX_PASSES = 3

/** Counts the Sluice Workers that forwarded a request. Each adds one entry to `CDN-Loop` (RFC 8586). */
const passesOf = (headers: Headers): number =>
  (headers.get('cdn-loop') ?? '').split(',').filter((entry) => /^\s*sluice\s*(;|$)/i.test(entry))
    .length

export function whyNotForward({ url, method, headers }: Request, origin: string) {
  if (passesOf(headers) >= MAX_PASSES) {
    const detail = `This request has already passed ${MAX_PASSES} Sluice Workers, so the origin leads back to this Worker: set origin in sluice.config.ts, or the variable ORIGIN, to the server behind it.`
    return { status: 508, title: 'Loop Detected', detail }
  }
  // workerd would send these without the body.
  if (headers.has('transfer-encoding') && (method === 'GET' || method === 'HEAD')) {
    const detail = `A ${method} with a body needs Content-Length: Workers drop a body in chunks.`
    return { status: 411, title: 'Length Required', detail }
  }
  const hasBase = origin !== 'zone' && new URL(origin).pathname !== '/'
  if (hasBase && leavesBase(new URL(url).pathname)) {
    const detail =
      'The decoded path leaves the base path of the origin. Resolve ".." before you send the request.'
    return { status: 400, title: 'Bad Request', detail }
  }
  return undefined
}

/** Returns why the origin `'zone'` cannot serve this request, or `undefined` if it can. */
export function noZone(request: Request): string | undefined {
  const { hostname } = new URL(request.url)
  return /(^|\.)(workers\.dev|localhost)$|^[\d.]+$|^\[/.test(hostname)
    ? `origin 'zone' needs a route on a zone, but ${hostname} is not on a zone: set origin in sluice.config.ts, or the variable ORIGIN, to a URL`
    : undefined
}
