/** A receiver of webhooks on loopback. */
import { createHmac } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export const SECRET = `whsec_${Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')}`

export interface Post {
  method: string
  path: string
  headers: IncomingHttpHeaders
  body: string
}

/** Starts a server that records each request and answers with `answer`, by default 200. */
export async function startReceiver() {
  const receiver = {
    url: '',
    posts: [] as Post[],
    answer: (response: ServerResponse, _attempt: number): unknown => response.end(),
    /** The ids of all requests. */
    ids: () => receiver.posts.map(({ headers }) => headers['webhook-id']),
    notices: () => receiver.posts.map(({ body }) => JSON.parse(body)),
    close,
  }
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { method = '', url: path = '', headers } = request
    receiver.posts.push({ method, path, headers, body: Buffer.concat(chunks).toString() })
    receiver.answer(response, receiver.posts.length)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
  async function close() {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  return receiver
}

export type Receiver = Awaited<ReturnType<typeof startReceiver>>

/** The signature of a request, computed by Node. */
export function signatureOf({ headers, body }: Post, key: Buffer): string {
  const content = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
  return `v1,${createHmac('sha256', key).update(content).digest('base64')}`
}

export const keyOf = (secret: string) => Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
