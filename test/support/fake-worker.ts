/** An HTTP server that answers calls of the decision API with fixed JSON. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export const FAKE_TOKEN = 'fake-operate-token'

interface FakeAnswer {
  status?: number
  headers?: Record<string, string>
  /** Sent as JSON; a text is sent as HTML. */
  body: unknown
}

export interface FakeCall {
  method: string
  path: string
  headers: Record<string, unknown>
  /** The parsed JSON. */
  body: unknown
}

/** Starts the server. `answer` may change while it runs. A call without an answer gets 404, and one without the token 401. */
export async function startFakeWorker() {
  const calls: FakeCall[] = []
  const worker = {
    url: '',
    calls,
    answer: (_: FakeCall): FakeAnswer | undefined => undefined,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += chunk
    const { method = '', url = '', headers } = request
    const call = { method, path: url, headers, body: text && JSON.parse(text) }
    calls.push(call)
    const isAllowed = headers.authorization === `Bearer ${FAKE_TOKEN}`
    const answer = isAllowed
      ? (worker.answer(call) ?? { status: 404, body: { detail: 'none' } })
      : { status: 401, body: { detail: 'The token is not valid.' } }
    const isText = typeof answer.body === 'string'
    response
      .writeHead(answer.status ?? 200, {
        'Content-Type': isText ? 'text/html' : 'application/json',
        ...('headers' in answer && answer.headers),
      })
      .end(isText ? answer.body : JSON.stringify(answer.body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  worker.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return worker
}

export type FakeWorker = Awaited<ReturnType<typeof startFakeWorker>>
