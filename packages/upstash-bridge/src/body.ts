import type { IncomingMessage } from 'node:http'
import { BadRequest } from './request.ts'

/**
 * Reads the body of a request, up to `limit` bytes. Discards a longer body, but reads it to its end (up to 10 times the
 * limit): a client that is still sending would not see the response.
 *
 * @throws BadRequest with Upstash's message when the body is too long.
 */
export function readBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= limit) chunks.push(chunk)
      else chunks.length = 0
      if (size > 10 * limit) request.destroy()
    })
    request.on('end', () => {
      if (size <= limit) return resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
      const sizes = `Limit: ${limit} bytes, Actual: ${size} bytes`
      reject(new BadRequest(`ERR max request size exceeded. ${sizes}`))
    })
    request.on('error', reject)
    request.on('close', () => {
      if (!request.complete)
        reject(new BadRequest('ERR the request ended before its body was complete'))
    })
  })
}
