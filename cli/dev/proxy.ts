import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http'
import { connect, type Socket } from 'node:net'

/** The Worker that receives requests. */
export interface Target {
  port: number
  /** Number of requests in flight. */
  inFlight: number
  /** Called when no request is in flight any more. */
  onIdle?: () => void
}

/** A port that stays open while the Worker behind it is replaced. */
export interface FrontDoor {
  /** Sends new requests to this Worker. Requests in flight stay with the previous one. */
  use(target: Target): void
  close(): void
}

/** Hop-by-hop header fields, which are not forwarded. */
const HOP = new Set(['connection', 'keep-alive', 'proxy-connection', 'expect'])
const MAX_HEADER_BYTES = 2 ** 20

/** Opens a loopback port that forwards requests to the current Worker. */
export async function startProxy(port: number, first: Target): Promise<FrontDoor> {
  let current = first

  /** Counts a request as in flight until the response or socket closes. */
  function enter(ended: ServerResponse | Socket): Target {
    const target = current
    target.inFlight += 1
    ended.once('close', () => {
      target.inFlight -= 1
      if (target.inFlight === 0) target.onIdle?.()
    })
    return target
  }

  const server = createServer(
    { maxHeaderSize: MAX_HEADER_BYTES, requestTimeout: 0 },
    (incoming, response) => {
      const { port } = enter(response)
      const { method, url, rawHeaders } = incoming
      const headers = endToEnd(rawHeaders)
      if (/^(POST|PUT|PATCH)$/.test(method!) && !hasBody(incoming)) {
        headers.push('Content-Length', '0')
      }
      const outgoing = send({
        host: '127.0.0.1',
        port,
        method,
        path: url!,
        headers,
        agent: false,
        maxHeaderSize: MAX_HEADER_BYTES,
      })
      outgoing.on('response', (answer) => {
        response.writeHead(
          answer.statusCode!,
          answer.statusMessage,
          endToEnd(answer.rawHeaders) as unknown as string[],
        )
        answer.on('error', () => response.destroy())
        answer.pipe(response)
      })
      outgoing.on('error', () => {
        if (response.headersSent) response.destroy()
        else response.writeHead(502).end('The Worker did not respond.\n')
      })
      response.on('close', () => outgoing.destroy())
      incoming.pipe(outgoing)
    },
  )
  // WebSockets: forwards the handshake unchanged, then bytes in both directions.
  server.on('upgrade', ({ method, url, rawHeaders }: IncomingMessage, client: Socket, head) => {
    const { port } = enter(client)
    const worker = connect(port, '127.0.0.1')
    const fields = pairs(rawHeaders).map(([name, value]) => `${name}: ${value}\r\n`)
    worker.write(`${method} ${url} HTTP/1.1\r\n${fields.join('')}\r\n`, 'latin1')
    worker.write(head)
    client.pipe(worker).pipe(client)
    client.on('error', () => worker.destroy()).on('close', () => worker.destroy())
    worker.on('error', () => client.destroy()).on('close', () => client.destroy())
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    use(target) {
      current = target
    },
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

const hasBody = ({ headers }: IncomingMessage) =>
  headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined

const pairs = (raw: string[]) =>
  Array.from({ length: raw.length / 2 }, (_, n) => [raw[2 * n]!, raw[2 * n + 1]!] as const)

const endToEnd = (raw: string[]) =>
  pairs(raw).flatMap(([name, value]) => (HOP.has(name.toLowerCase()) ? [] : [name, value]))
