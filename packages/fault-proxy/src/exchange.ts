import type { IncomingMessage, ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { endToEnd, type Target } from './target.ts'

/** An answer, whole. */
export interface Answer {
  status: number
  body: string | Buffer
  headers?: Record<string, string>
}

/** One request in flight, and what a fault may do with it. */
export class Exchange {
  readonly body: Buffer
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #target: Target

  constructor(request: IncomingMessage, body: Buffer, response: ServerResponse, target: Target) {
    this.body = body
    this.#request = request
    this.#response = response
    this.#target = target
  }

  /** Path and header fields as they came. */
  get head(): { url: string; fields: Record<string, unknown> } {
    return { url: this.#request.url!, fields: this.#request.headers }
  }

  /** Sends the request on and hands its answer back as it comes. */
  async pass(body = this.body): Promise<void> {
    const answer = await this.#target.deliver(this.#request, body)
    this.#response.writeHead(answer.statusCode!, endToEnd(answer.headers))
    answer.on('error', () => this.drop()).pipe(this.#response)
  }

  /** Sends the request on and waits for its answer, which the client has not seen. */
  async deliver(): Promise<Answer> {
    const answer = await this.#target.deliver(this.#request, this.body)
    return { status: answer.statusCode!, body: await buffer(answer) }
  }

  /** Sends another command to the same database. */
  async command(...command: string[]): Promise<void> {
    await this.#target.command(this.#request, command)
  }

  answer({ status, body, headers = {} }: Answer): void {
    const type = { 'content-type': 'application/json' }
    this.#response.writeHead(status, { ...type, 'content-length': bytes(body), ...headers })
    this.#response.end(body)
  }

  /** Sends the head of an answer and half of its body. Resolves when they are written. */
  async begin({ status, body }: Answer): Promise<void> {
    this.#response.writeHead(status, {
      'content-type': 'application/json',
      'content-length': bytes(body),
    })
    const half = Buffer.from(body).subarray(0, Math.ceil(bytes(body) / 2))
    await new Promise<void>((resolve) => this.#response.write(half, () => resolve()))
  }

  /** Breaks the connection. */
  drop(): void {
    this.#request.socket.resetAndDestroy()
  }

  /** Whether the client has hung up. */
  get over(): boolean {
    return this.#response.destroyed
  }

  /** Sends an answer piece by piece. */
  async drip({ status, body }: Answer, pause: () => Promise<void>): Promise<void> {
    this.#response.writeHead(status, { 'content-type': 'application/json' })
    for (const byte of Buffer.from(body)) {
      if (this.over) return
      this.#response.write(Buffer.of(byte))
      await pause()
    }
    this.#response.end()
  }
}

const bytes = (body: string | Buffer) => Buffer.byteLength(body)
