/** A demo origin behind the Worker. Responds with the received request as JSON; some routes misbehave on purpose. */
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { WebSocketServer } from 'ws'

export interface RunningOrigin {
  url: string
  /** Number of requests received. */
  requests(): number
  close(): Promise<void>
}

/** The received request, as the origin describes it. */
export interface Echo {
  method: string
  /** Path and query, unchanged. */
  url: string
  /** Names in lower case; several values joined with ", ". */
  headers: Record<string, string>
  body: { bytes: number; sha256: string /** The first kilobyte. */; text: string }
}

type Route = (argument: string, request: IncomingMessage, response: ServerResponse) => unknown

const routes: Record<string, Route> = {
  /** `/stream/1000`: a body of 1,000 bytes, as fast as the client reads it. */
  stream(bytes, _, response) {
    let left = Number(bytes)
    response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': left })
    const chunk = Buffer.alloc(65536, 'sluice')
    const send = () => {
      while (left > 0) {
        const size = Math.min(left, chunk.length)
        left -= size
        if (!response.write(chunk.subarray(0, size))) return response.once('drain', send)
      }
      response.end()
    }
    send()
  },
  /** `/slow/1000`: a response after 1,000 ms. */
  slow(milliseconds, request, response) {
    setTimeout(() => echo(request, response), Number(milliseconds))
  },
  /** `/drip/1000`: a word every 100 ms for 1,000 ms. */
  async drip(milliseconds, _, response) {
    response.writeHead(200, { 'content-type': 'text/plain' })
    for (let left = Number(milliseconds); left > 0; left -= 100) {
      response.write('drip ')
      await sleep(100)
    }
    response.end()
  },
  /** `/status/503`: a response with this status. */
  status(status, _, response) {
    response.writeHead(Number(status)).end(`status ${status}\n`)
  },
  /** `/redirect/302`: a redirect to `/elsewhere` with this status and two cookies. */
  redirect(status, _, response) {
    response
      .writeHead(Number(status), { location: '/elsewhere', 'set-cookie': ['a=1', 'b=2'] })
      .end()
  },
  /** `/gzip/any`: a compressed response. */
  gzip(_argument, _, response) {
    const body = gzipSync('sluice '.repeat(1000))
    response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': body.length }).end(body)
  },
  /** `/headers/100000`: a header field of 100,000 bytes. */
  headers(bytes, _, response) {
    response.writeHead(200, { 'x-long': 'x'.repeat(Number(bytes)) }).end('long headers\n')
  },
  /** `/cut/any`: breaks the connection within the body. */
  cut(_argument, request, response) {
    response.writeHead(200, { 'content-length': 1000 }).write('half')
    setTimeout(() => request.socket.resetAndDestroy(), 50)
  },
  /** `/reset/any`: breaks the connection before the response. */
  reset(_argument, request) {
    request.socket.resetAndDestroy()
  },
}

/** Echoes the request. `?answer-status=401&answer-header=x-price:7&answer-after=1000` (ms) changes the response. */
function echo(request: IncomingMessage, response: ServerResponse) {
  const options = new URLSearchParams(request.url!.split('?')[1])
  const [name, value = ''] = options.get('answer-header')?.split(':') ?? []
  const hash = createHash('sha256')
  let bytes = 0
  let text = ''
  request.on('data', (chunk: Buffer) => {
    hash.update(chunk)
    bytes += chunk.length
    if (text.length < 1024) text += chunk.toString('utf8', 0, 1024)
  })
  request.on('end', () => {
    const headers = Object.fromEntries(
      Object.entries(request.headersDistinct).map(([name, values]) => [name, values!.join(', ')]),
    )
    const echoed: Echo = {
      method: request.method!,
      url: request.url!,
      headers,
      body: { bytes, sha256: hash.digest('hex'), text: text.slice(0, 1024) },
    }
    const body = request.method === 'HEAD' ? '' : `${JSON.stringify(echoed, null, 2)}\n`
    const answer = () =>
      response
        .writeHead(Number(options.get('answer-status') ?? 200), {
          'content-type': 'application/json',
          ...(name && { [name]: value }),
        })
        .end(body)
    const after = Number(options.get('answer-after'))
    if (after > 0) setTimeout(answer, after)
    else answer()
  })
}

/** Starts the origin on loopback. Echoes WebSocket messages on every path. `port` defaults to a free port. */
export async function startOrigin({ port = 0 } = {}): Promise<RunningOrigin> {
  let requests = 0
  const server = createServer((request, response) => {
    requests++
    const [, name = '', argument = ''] = request.url!.split(/[/?]/)
    const route = Object.hasOwn(routes, name) && argument ? routes[name]! : undefined
    if (route) route(argument, request, response)
    else echo(request, response)
  })
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket) =>
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary })),
  )
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    sockets.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: () => requests,
    async close() {
      for (const socket of sockets.clients) socket.terminate()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
