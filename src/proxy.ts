import { network } from './ip.ts'
import { problem } from './response.ts'

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

/**
 * Sends a request on to an origin and hands back its answer: same method, path, query and body, streamed both ways; redirects untouched.
 * @param origin an http(s) URL, whose path if any is put before the request's; or `'zone'`, the origin of the zone the Worker is on
 * @returns a 502 problem where the origin cannot be reached
 */
export async function forward(request: Request, origin: string): Promise<Response> {
  const outgoing = origin === 'zone' ? request : readdress(request, origin)
  let response: Response
  try {
    response = await fetch(outgoing, { redirect: 'manual' })
  } catch {
    return problem(502, { title: 'Bad Gateway', detail: 'The origin did not answer.' })
  }
  if (origin === 'zone' || response.status === 101) return response
  return new Response(response.body, {
    ...responseInit(response),
    headers: withoutHopByHop(response.headers),
  })
}

const responseInit = ({ status, statusText }: Response) => ({ status, statusText })

function readdress(request: Request, origin: string): Request {
  const url = new URL(request.url)
  // By text, so that nothing in the path can name another host, and no byte of it changes.
  const target = origin.replace(/\/$/, '') + request.url.slice(url.origin.length)
  const headers = withoutHopByHop(request.headers)
  headers.delete('host') // the origin's own, from the URL
  if (request.headers.get('upgrade')?.toLowerCase() === 'websocket')
    headers.set('Upgrade', 'websocket')
  headers.set('X-Forwarded-Host', url.host)
  headers.set('X-Forwarded-Proto', url.protocol.slice(0, -1))
  // What the client says of itself in these is not passed on: an origin would believe it.
  headers.delete('forwarded')
  const client = network(request.headers.get('cf-connecting-ip') ?? '', 32, 128)?.replace(
    '/128',
    '',
  )
  if (client) headers.set('X-Forwarded-For', client)
  else headers.delete('x-forwarded-for')
  return new Request(target, {
    method: request.method,
    headers,
    body: request.body,
    redirect: 'manual',
  })
}

/** Why `'zone'` cannot work for this request, or `undefined` where it can. */
export function noZone(request: Request): string | undefined {
  const { hostname } = new URL(request.url)
  return /(^|\.)(workers\.dev|localhost)$|^[\d.]+$|^\[/.test(hostname)
    ? `origin 'zone' needs a route on a zone, and ${hostname} is none: set origin in sluice.config.ts, or the variable ORIGIN, to a URL`
    : undefined
}
