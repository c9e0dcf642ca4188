import { ErrorReply } from 'redis'
import type { Reply } from './connection.ts'
import { BadRequest } from './request.ts'

/** The bytes of the replies to one request, counted as they arrive. */
export class ReplySize {
  readonly #max: number
  #bytes = 0

  constructor(max: number) {
    this.#max = max
  }

  /** @throws BadRequest when the replies so far are too large */
  add(reply: Reply): void {
    this.#bytes += bytesOf(reply)
    if (this.#bytes > this.#max) throw tooLarge(this.#max, this.#bytes)
  }
}

export function tooLarge(max: number, bytes: number): BadRequest {
  return new BadRequest(
    `ERR max response size exceeded. Limit: ${max} bytes, Actual: ${bytes} bytes`,
  )
}

function bytesOf(reply: Reply): number {
  if (Array.isArray(reply)) return reply.reduce<number>((sum, one) => sum + bytesOf(one), 0)
  if (reply === null || typeof reply === 'number' || reply instanceof ErrorReply) return 0
  return reply.length
}
