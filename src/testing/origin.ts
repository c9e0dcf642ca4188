import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Answers the requests that a gateway forwards. */
export type TestOrigin = (request: Request) => Response | Promise<Response>

/** Serves an origin on a free loopback port. If it throws, the response is the error, with status 500. */
export async function serveOrigin(origin: TestOrigin) {
  const server = createServer(async (incoming, outgoing) => {
    const response = await Promise.resolve(requestOf(incoming))
      .then(origin)
      .catch((error: Error) => new Response(`${error.stack ?? error}\n`, { status: 500 }))
    const { 'set-cookie': _, ...fields } = Object.fromEntries(response.headers)
    const cookies = response.headers.getSetCookie()
    outgoing.writeHead(response.status, {
      ...fields,
      ...(cookies.length > 0 && { 'set-cookie': cookies }),
    })
    for await (const chunk of response.body ?? []) outgoing.write(chunk)
    outgoing.end()
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve)
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function requestOf(incoming: IncomingMessage): Request {
  const { method = 'GET', url = '/', headersDistinct } = incoming
  const headers = new Headers()
  for (const [name, values = []] of Object.entries(headersDistinct)) {
    for (const value of values) headers.append(name, value)
  }
  const hasBody = method !== 'GET' && method !== 'HEAD'
  const body = hasBody && { body: incoming, duplex: 'half' }
  return new Request(new URL(url, `http://${incoming.headers.host}`), {
    method,
    headers,
    ...body,
  } as unknown as RequestInit)
}
