/** A receiver of webhooks on loopback. */
import { createHmac } from 'node:crypto'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { startLoopback } from './loopback.ts'

export const SECRET = `whsec_${Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')}`

export interface Post {
  method: string
  path: string
  headers: IncomingHttpHeaders
  body: string
}

/** Starts a server that records each request and answers with `answer`, by default 200. */
export async function startReceiver() {
  const { url, close } = await startLoopback(async (request, response) => {
    const body = await text(request)
    const { method = '', url: path = '', headers } = request
    receiver.posts.push({ method, path, headers, body })
    receiver.answer(response, receiver.posts.length)
  })
  const receiver = {
    url: `${url}/hook`,
    posts: [] as Post[],
    answer: (response: ServerResponse, _attempt: number): unknown => response.end(),
    /** The ids of all requests. */
    ids: () => receiver.posts.map(({ headers }) => headers['webhook-id']),
    notices: () => receiver.posts.map(({ body }) => JSON.parse(body)),
    close,
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
