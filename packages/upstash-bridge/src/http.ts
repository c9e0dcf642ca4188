import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { ErrorReply } from 'redis'
import type { Admission } from './admission.ts'
import { readBody } from './body.ts'
import { type Command, type Format, RedisDown, type Reply } from './connection.ts'
import type { Caller, Database } from './database.ts'
import { type Gauges, Metrics, OPEN_METRICS } from './metrics.ts'
import { checkOrigin } from './origin.ts'
import { errorJson, toJson, toResp2 } from './reply.ts'
import { tooLarge } from './reply-size.ts'
import { BadRequest, parseCommand, parseCommands, parsePath, tokenIn } from './request.ts'
import { type Entry, logLine } from './request-log.ts'
import { isStream, type Streams } from './streams.ts'
import type { Access, Tokens } from './tokens.ts'

/** Limits on one request. Sizes are in bytes. */
export type Limits = { maxBody: number; maxPipeline: number; maxReply: number }

export type HandlerOptions = {
  databases: Database[]
  tokens: Tokens
  streams: Streams
  admission: Admission
  limits: Limits
  /** Latency added to each request, in ms. */
  rtt: number
  /** Maximum time in ms in the queue, and without progress while a client reads its response. */
  timeout: number
  /** Host names to accept in addition to loopback names. */
  allowHosts: string[]
  /** Receives a line for each request. */
  log?: ((line: string) => void) | undefined
  /** True when the bridge accepts no more connections. */
  isStopping(): boolean
}

type Answer = {
  status: number
  body: string | Buffer
  type?: string
  headers?: Record<string, string>
}

const METHODS = ['HEAD', 'GET', 'POST', 'PUT']

/** Creates the request handler. The handler responds to every request and never rejects. */
export function createHandler(options: HandlerOptions) {
  const { databases, tokens, streams, admission, limits, rtt, timeout, log, isStopping } = options
  const allowed = new Set(options.allowHosts.map((name) => name.toLowerCase()))
  const boot = Date.now().toString(36)
  const metrics = new Metrics()
  let answers = 0

  return async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const start = performance.now()
    const entry: Entry = { kind: 'other', commands: [] }
    // Clients send the last token back, for read-your-writes consistency. The bridge ignores it: it reads from masters.
    response.setHeader('upstash-sync-token', `${boot}=${++answers}`)
    let answer: Answer | undefined
    try {
      answer = await answerTo(request, response, entry)
    } catch (error) {
      answer = failure(error)
    }
    const ms = performance.now() - start
    metrics.add(answer?.status ?? 200, ms / 1000)
    log?.(logLine(entry, answer?.status ?? 200, ms, (name) => databases[0]!.knows(name)))
    if (!answer || response.destroyed) return
    if (response.headersSent) return void response.destroy() // a stream that failed
    const { status, body, type = 'application/json', headers } = answer
    const length = Buffer.byteLength(body)
    if (isStopping()) response.setHeader('connection', 'close')
    response.writeHead(status, { 'content-type': type, 'content-length': length, ...headers })
    response.end(request.method === 'HEAD' ? undefined : body)
    // Otherwise a client that does not read would hold its response in memory.
    if (response.writableLength > 0) response.setTimeout(timeout)
  }

  /** @returns `undefined` when the response is a stream, which `streams` writes */
  async function answerTo(
    request: IncomingMessage,
    response: ServerResponse,
    entry: Entry,
  ): Promise<Answer | undefined> {
    const { method = '', url = '/' } = request
    if (!METHODS.includes(method)) {
      throw new BadRequest('ERR method not allowed', 405, { allow: METHODS.join(', ') })
    }
    const [path, query] = splitUrl(url)
    if (path === '/health' || path.startsWith('/health/')) return health(path)
    checkOrigin(request, allowed)
    const access = tokens.find(tokenOf(request, query) ?? '')
    if (!access) throw new BadRequest('WRONGPASS invalid or missing auth token', 401)
    const { database, readOnly } = access
    if (path === '/__stats') return { status: 200, body: JSON.stringify(database.bill) }
    if (path === '/metrics')
      return { status: 200, body: metrics.text(gauges()), type: OPEN_METRICS }
    database.bill.http++
    admission.check()
    const [format, base64] = formatOf(request)
    const sent = await readBody(request, limits.maxBody)
    const body = method === 'POST' || method === 'PUT' ? sent : Buffer.alloc(0)
    if (isStream(path)) return stream(parsePath(path, '', Buffer.alloc(0)), access, response, entry)
    const caller = { readOnly, isOver: () => response.destroyed }
    const arrived = performance.now()
    return admission.run(async () => {
      if (caller.isOver()) throw new BadRequest('ERR the client has disconnected', 499)
      if (performance.now() - arrived > timeout) {
        throw new RedisDown(`Redis was busy: the request has waited for ${timeout} ms`)
      }
      const waited = rtt > 0 ? await wait(rtt / 2) : 0
      Object.assign(entry, parse(path, query, body))
      const answer = await run(database, entry, format, base64, caller)
      if (rtt > 0) await wait(rtt - waited)
      return answer
    })
  }

  async function stream(
    command: Command,
    { database, readOnly }: Access,
    response: ServerResponse,
    entry: Entry,
  ): Promise<undefined> {
    Object.assign(entry, { kind: 'stream', commands: [command] })
    const reason = readOnly && database.permissions.refusal(command)
    if (reason) throw new BadRequest(reason)
    database.bill.commands++
    await streams.open(command, database.backend.addresses(), response)
  }

  function parse(path: string, query: string, body: Buffer): Entry {
    if (path !== '/pipeline' && path !== '/multi-exec') {
      const command = path === '/' ? parseCommand(body) : parsePath(path, query, body)
      return { kind: 'command', commands: [command] }
    }
    const commands = parseCommands(body)
    if (commands.length > limits.maxPipeline) {
      const sizes = `Limit: ${limits.maxPipeline} commands, Actual: ${commands.length} commands`
      throw new BadRequest(`ERR max pipeline size exceeded. ${sizes}`)
    }
    return { kind: path === '/pipeline' ? 'pipeline' : 'multi-exec', commands }
  }

  async function run(
    database: Database,
    { kind, commands }: Entry,
    format: Format,
    base64: boolean,
    caller: Caller,
  ): Promise<Answer> {
    const json = (replies: Reply[]) =>
      `[${replies.map((reply) => toJson(reply, base64)).join(',')}]`
    if (kind === 'multi-exec') {
      return limited(200, json(await database.transaction(commands, caller)))
    }
    const replies = await database.run(commands, format, caller)
    const [first = null] = kind === 'command' ? replies : []
    const status = first instanceof ErrorReply ? 400 : 200
    if (format === 'resp2') {
      return limited(status, Buffer.concat(replies.map(toResp2)), 'application/octet-stream')
    }
    return limited(status, kind === 'command' ? toJson(first, base64) : json(replies))
  }

  function limited(status: number, body: string | Buffer, type = 'application/json'): Answer {
    const length = limits.maxReply === Infinity ? 0 : Buffer.byteLength(body)
    if (length <= limits.maxReply) return { status, body, type }
    throw tooLarge(limits.maxReply, length)
  }

  /** Liveness at `/health/live`; readiness at `/health/ready` and `/health`. */
  function health(path: string): Answer {
    const { up, databases } = gauges()
    const isReady = !isStopping() && up === databases
    if (path === '/health/live') return { status: 200, body: '{"status":"live"}' }
    const body = { status: isReady ? 'ready' : 'not ready', stopping: isStopping(), up, databases }
    return { status: isReady ? 200 : 503, body: JSON.stringify(body) }
  }

  function gauges(): Gauges {
    const sum = (of: (database: Database) => number) =>
      databases.map(of).reduce((one, other) => one + other, 0)
    const inner = sum(({ bill }) => bill.inner)
    return {
      running: admission.running,
      waiting: admission.waiting,
      up: sum(({ backend }) => Number(backend.isUp())),
      databases: databases.length,
      commands: sum(({ bill }) => bill.commands) - inner,
      inner,
    }
  }
}

/** Waits and returns the actual time in ms. Timers fire a millisecond or more late; the second wait compensates. */
async function wait(ms: number): Promise<number> {
  const start = performance.now()
  await sleep(Math.max(0, Math.round(ms)))
  return performance.now() - start
}

function failure(error: unknown): Answer {
  if (error instanceof BadRequest) {
    return { status: error.status, body: errorJson(error.message), headers: error.headers }
  }
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

function splitUrl(url: string): [path: string, query: string] {
  const target = url.replace(/^https?:\/\/[^/?]*/i, '') // absolute-form, which proxies send
  const at = target.indexOf('?')
  const [path, query] = at === -1 ? [target, ''] : [target.slice(0, at), target.slice(at + 1)]
  return [path || '/', query]
}
