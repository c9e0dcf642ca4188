import { ErrorReply } from 'redis'
import { inTheirWords } from './commands.ts'
import type { Reply } from './connection.ts'

/** The JSON of Upstash for one reply: `{"result": …}` or `{"error": …}`. */
export function toJson(reply: Reply, base64: boolean): string {
  if (reply instanceof ErrorReply) return errorJson(inTheirWords(reply.message))
  // The client accepts a plain OK only at the top level. Inside an array it would decode it as base64.
  if (reply instanceof Buffer && reply.length === 2 && reply.equals(OK)) return '{"result":"OK"}'
  return `{"result":${value(reply, base64)}}`
}

/** `{"error": …}`. An error is never base64. */
export function errorJson(message: string): string {
  return `{"error":${JSON.stringify(message)}}`
}

const OK = Buffer.from('OK')

function value(reply: Reply, base64: boolean): string {
  if (reply === null) return 'null'
  if (typeof reply === 'string') return reply
  if (typeof reply === 'number') return `${reply}`
  if (Array.isArray(reply)) return `[${reply.map((item) => value(item, base64)).join(',')}]`
  const bytes = reply instanceof ErrorReply ? Buffer.from(reply.message) : reply
  // Without base64, bytes that are not valid UTF-8 become U+FFFD, as at Upstash.
  return base64 ? `"${bytes.toString('base64')}"` : JSON.stringify(bytes.toString())
}

/** The reply in RESP2, for `Upstash-Response-Format: resp2`. */
export function toResp2(reply: Reply): Buffer {
  if (reply === null) return Buffer.from('$-1\r\n')
  if (typeof reply === 'string') return Buffer.from(`+${reply}\r\n`)
  if (typeof reply === 'number') return Buffer.from(`:${reply}\r\n`)
  if (reply instanceof ErrorReply) return Buffer.from(`-${inTheirWords(reply.message)}\r\n`)
  if (Array.isArray(reply)) {
    return Buffer.concat([Buffer.from(`*${reply.length}\r\n`), ...reply.map(toResp2)])
  }
  return Buffer.concat([Buffer.from(`$${reply.length}\r\n`), reply, Buffer.from('\r\n')])
}
