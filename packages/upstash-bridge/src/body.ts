import type { IncomingMessage } from 'node:http'
import { BadRequest } from './request.ts'

/** Upstash's limit on one HTTP request, in bytes. */
const LIMIT = 10 * 1024 * 1024

/**
 * The body of a request, up to 10 MB. Of a longer one nothing is kept, but it is read to its end: a
 * client that is still sending would not see the answer.
 *
 * @throws BadRequest with Upstash's text when it is too long.
 */
export function readBody(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= LIMIT) chunks.push(chunk)
      else chunks.length = 0
      if (size > 10 * LIMIT) request.destroy() // enough politeness
    })
    request.on('end', () => {
      if (size <= LIMIT) return resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
      const told = `Limit: ${LIMIT} bytes, Actual: ${size} bytes`
      reject(new BadRequest(`ERR max request size exceeded. ${told}`))
    })
    request.on('error', reject)
    request.on('close', () => {
      if (!request.complete) reject(new BadRequest('ERR the request ended early'))
    })
  })
}
