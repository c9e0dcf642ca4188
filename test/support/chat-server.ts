/** An origin that answers like the chat completions of OpenAI: server-sent events, one for each token, and the usage at the end. */
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { type Script, startScriptedOrigin } from './scripted-origin.ts'

/** What the origin has generated. */
export interface ChatServer {
  url: string
  /** The tokens that the origin has sent in all responses. */
  sent: () => number
  /** Responses that are not finished. */
  inFlight: () => number
  /** The value of Accept-Encoding in the last request. */
  accepted: () => string | undefined
  close: () => Promise<void>
}

const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`

/** The whole body of a response of `tokens` tokens, as the origin sends it. */
export const chatBody = (tokens: number, hasUsage = true): string =>
  [...chatParts(tokens, hasUsage)].join('')

function* chatParts(tokens: number, hasUsage: boolean): Generator<string> {
  for (let index = 0; index < tokens; index += 1) {
    yield event({ object: 'chat.completion.chunk', choices: [{ delta: { content: ` ${index}` } }] })
  }
  if (hasUsage) {
    yield event({ object: 'chat.completion.chunk', choices: [], usage: { total_tokens: tokens } })
  }
  yield 'data: [DONE]\n\n'
}

/** A JSON body: as text, in several members of gzip, or in gzip with other bytes after its end. */
function bytesOf(body: object, gzip: string | null): string | Uint8Array {
  const text = JSON.stringify(body)
  if (gzip === 'members')
    return Buffer.concat([text.slice(0, 9), text.slice(9)].map((part) => gzipSync(part)))
  return gzip === null ? text : Buffer.concat([gzipSync(text), Buffer.alloc(100_000, 7)])
}

/**
 * Starts the origin. Parameters of the query: `tokens`; `ms` between two tokens; `stream=false` for a JSON response, and with it `gzip=members` or `gzip=longer`; `usage=false` for a
 * response without usage.
 */
export async function startChatServer(): Promise<ChatServer> {
  let sent = 0
  let inFlight = 0
  let accepted: string | undefined

  async function stream(query: URLSearchParams, response: ServerResponse) {
    const tokens = Number(query.get('tokens') ?? 10)
    const ms = Number(query.get('ms') ?? 0)
    const hasUsage = query.get('usage') !== 'false'
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.flushHeaders()
    let index = 0
    for (const part of chatParts(tokens, hasUsage)) {
      if (response.destroyed) return
      if (!response.write(part))
        await new Promise((resolve) => response.once('drain', resolve).once('close', resolve))
      if (index < tokens) sent += 1
      index += 1
      if (ms > 0) await sleep(ms)
      else if (index % 20 === 0) await sleep(1)
    }
    response.end()
  }

  const script: Script = ({ searchParams: query }, response, { headers }) => {
    accepted = headers['accept-encoding'] as string | undefined
    inFlight += 1
    response.once('close', () => {
      inFlight -= 1
    })
    if (query.get('stream') !== 'false') return void stream(query, response)
    const tokens = Number(query.get('tokens') ?? 10)
    sent += tokens
    const bytes = bytesOf({ choices: [], usage: { total_tokens: tokens } }, query.get('gzip'))
    response.writeHead(Number(query.get('status') ?? 200), {
      'content-type': 'application/json',
      ...(query.has('gzip')
        ? { 'content-encoding': 'gzip' }
        : { 'content-length': String(bytes.length) }),
    })
    response.end(bytes)
  }
  const { url, close } = await startScriptedOrigin(script)
  return { url, close, sent: () => sent, inFlight: () => inFlight, accepted: () => accepted }
}
