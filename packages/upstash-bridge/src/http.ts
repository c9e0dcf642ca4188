import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { ErrorReply } from 'redis'
import { readBody } from './body.ts'
import { type Format, RedisDown, type Reply } from './connection.ts'
import type { Database } from './database.ts'
import { errorJson, toJson, toResp2 } from './reply.ts'
import { BadRequest, parseCommand, parseCommands, parsePath, tokenIn } from './request.ts'
import { isStream, type Streams } from './streams.ts'

export type HandlerOptions = {
  /** The databases by token. */
  databases: Map<string, Database>
  streams: Streams
  /** Latency added to each request, in ms. */
  rtt: number
  /** Host names to accept in addition to loopback names. */
  allowHosts: string[]
}

type Answer = { status: number; body: string | Buffer; type?: string }

const METHODS = ['HEAD', 'GET', 'POST', 'PUT']

/** Creates the request handler. The handler responds to every request and never rejects. */
export function createHandler({ databases, streams, rtt, allowHosts }: HandlerOptions) {
  const allowed = new Set(allowHosts.map((name) => name.toLowerCase()))
  const boot = Date.now().toString(36)
  let answers = 0

  return async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // Clients send the last token back, for read-your-writes consistency. The bridge ignores it: it has one Redis.
    response.setHeader('upstash-sync-token', `${boot}=${++answers}`)
    let answer: Answer | undefined
    try {
      answer = await answerTo(request, response)
    } catch (error) {
      answer = failure(error)
    }
    if (!answer || response.destroyed) return
    if (response.headersSent) return void response.destroy() // a stream that failed
    const { status, body, type = 'application/json' } = answer
    response.writeHead(status, {
      'content-type': type,
      'content-length': Buffer.byteLength(body),
      ...(status === 405 && { allow: METHODS.join(', ') }),
    })
    response.end(request.method === 'HEAD' ? undefined : body)
  }

  /** @returns `undefined` when the response is a stream, which `streams` writes */
  async function answerTo(request: IncomingMessage, response: ServerResponse) {
    const { method = '', url = '/' } = request
    if (!METHODS.includes(method)) throw new BadRequest('ERR method not allowed', 405)
    if (isFromAWebsite(request))
      throw new BadRequest('ERR refused: the request comes from a website', 403)
    const host = hostOf(request)
    if (host !== undefined && !isLoopback(host) && !allowed.has(host)) throw unknownHost(host)
    const [path, query] = splitUrl(url)
    const database = databases.get(tokenOf(request, query) ?? '')
    if (!database) throw new BadRequest('WRONGPASS invalid or missing auth token', 401)
    if (path === '/__stats') return { status: 200, body: JSON.stringify(database.bill) }
    database.bill.http++
    const [format, base64] = formatOf(request)
    const sent = await readBody(request)
    const body = method === 'POST' || method === 'PUT' ? sent : Buffer.alloc(0)
    const waited = rtt > 0 ? await wait(rtt / 2) : 0
    if (isStream(path)) {
      database.bill.commands++
      await streams.open(parsePath(path, '', Buffer.alloc(0)), database.url, response)
      return
    }
    const answer = await run(database, path, query, body, format, base64)
    if (rtt > 0) await wait(rtt - waited)
    return answer
  }
}

/** Waits and returns the actual time in ms. Timers fire a millisecond or more late; the second wait compensates. */
async function wait(ms: number): Promise<number> {
  const start = performance.now()
  await sleep(Math.max(0, Math.round(ms)))
  return performance.now() - start
}

async function run(
  database: Database,
  path: string,
  query: string,
  body: Buffer,
  format: Format,
  base64: boolean,
): Promise<Answer> {
  const json = (replies: Reply[]) => `[${replies.map((reply) => toJson(reply, base64)).join(',')}]`
  const resp2 = (replies: Reply[]) => Buffer.concat(replies.map(toResp2))
  if (path === '/multi-exec') {
    return { status: 200, body: json(await database.transaction(parseCommands(body))) }
  }
  const single = path !== '/pipeline'
  const commands = single
    ? [path === '/' ? parseCommand(body) : parsePath(path, query, body)]
    : parseCommands(body)
  const replies = await database.run(commands, format)
  const status = single && replies[0] instanceof ErrorReply ? 400 : 200
  if (format === 'resp2') return { status, body: resp2(replies), type: 'application/octet-stream' }
  return { status, body: single ? toJson(replies[0] ?? null, base64) : json(replies) }
}

function failure(error: unknown): Answer {
  if (error instanceof BadRequest) return { status: error.status, body: errorJson(error.message) }
  if (error instanceof RedisDown) return { status: 503, body: errorJson(`ERR ${error.message}`) }
  return { status: 500, body: errorJson(`ERR internal error: ${error}`) }
}

function formatOf(request: IncomingMessage): [Format, boolean] {
  const base64 = String(request.headers['upstash-encoding']).toLowerCase() === 'base64'
  const format = String(request.headers['upstash-response-format'] ?? 'json').toLowerCase()
  if (format !== 'json' && format !== 'resp2') {
    throw new BadRequest(`ERR invalid response format: ${format}`)
  }
  if (format === 'resp2' && base64) {
    throw new BadRequest('ERR base64 encoding is not allowed with the resp2 response format')
  }
  return [format, base64]
}

function tokenOf(request: IncomingMessage, query: string): string | undefined {
  const header = request.headers.authorization
  return header === undefined ? tokenIn(query) : /^Bearer\s+(.+)$/i.exec(header)?.[1]
}

/**
 * True for a request from a page of another host. Any page that a developer visits could otherwise send
 * `GET /flushall?_token=dev`, which needs no CORS. Requests from a page on this machine or from the address bar pass.
 */
function isFromAWebsite(request: IncomingMessage): boolean {
  const { origin } = request.headers
  if (origin === undefined) return request.headers['sec-fetch-site'] === 'cross-site'
  const [, host = ''] = /^https?:\/\/(.+?)(:\d+)?$/i.exec(origin) ?? []
  return !isLoopback(host)
}

/**
 * The Host header without the port; absent in HTTP/1.0, which no browser sends. A page whose host name resolves to
 * 127.0.0.1 (DNS rebinding) sends same-origin requests, which only their Host header reveals.
 */
const hostOf = ({ headers }: IncomingMessage) => headers.host?.replace(/:\d*$/, '').toLowerCase()

const isLoopback = (host: string) =>
  /^(localhost|[^/:]+\.localhost|127\.[\d.]+|\[::1\])$/i.test(host)

function unknownHost(host: string) {
  const name = host.slice(0, 255)
  return new BadRequest(
    `ERR refused: the Host header ${JSON.stringify(name)} is not a loopback name. To accept it, start the bridge with --allow-host ${name}`,
    403,
  )
}

function splitUrl(url: string): [path: string, query: string] {
  const target = url.replace(/^https?:\/\/[^/?]*/i, '') // absolute-form, which proxies send
  const at = target.indexOf('?')
  const [path, query] = at === -1 ? [target, ''] : [target.slice(0, at), target.slice(at + 1)]
  return [path || '/', query]
}
