import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http'
import { connect, type Socket } from 'node:net'

/** A Worker that requests are sent to. */
export interface Target {
  port: number
  /** How many requests are on their way. */
  inFlight: number
  /** Called whenever the last of them has ended. */
  onIdle?: () => void
}

/** A port that stays open in front of Workers. */
export interface FrontDoor {
  /** Sends requests from now on to this Worker; those under way stay where they are. */
  use(target: Target): void
  close(): void
}

/** Fields of one connection, which the two connections do not share. */
const HOP = new Set(['connection', 'keep-alive', 'proxy-connection', 'expect'])
const MAX_HEADER_BYTES = 2 ** 20

/** Keeps a port open in front of Workers that come and go. Listens on loopback only. */
export async function startProxy(port: number, first: Target): Promise<FrontDoor> {
  let current = first

  /** @param ended where a request ends, whatever becomes of it */
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
        else response.writeHead(502).end('The Worker did not answer.\n')
      })
      response.on('close', () => outgoing.destroy())
      incoming.pipe(outgoing)
    },
  )
  // A WebSocket: the handshake as it came, then bytes in both directions.
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
