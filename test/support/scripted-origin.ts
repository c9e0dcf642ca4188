import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Script = (url: URL, response: ServerResponse, request: IncomingMessage) => void

/** Starts an origin that answers with the script of the test. */
export async function startScriptedOrigin(script: Script) {
  const server = createServer((request, response) =>
    script(new URL(request.url!, 'http://origin'), response, request),
  ).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    server,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Ends responses that a test has left open, and waits until each has closed, so that no later test sees it. */
export const end = (unfinished: ServerResponse[]) =>
  Promise.all(
    unfinished.splice(0).map(async (response) => {
      if (response.closed) return
      const closed = once(response, 'close')
      response.destroy()
      await closed
    }),
  )
