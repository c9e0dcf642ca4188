import type { IncomingMessage, ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { endToEnd, type Target } from './target.ts'

/** A complete HTTP response. */
export interface Answer {
  status: number
  body: string | Buffer
  headers?: Record<string, string>
}

/** One request in flight, with the actions that faults are made of. */
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

  /** The path and the header fields of the request, unchanged. */
  get head(): { url: string; fields: Record<string, unknown> } {
    return { url: this.#request.url!, fields: this.#request.headers }
  }

  /** Forwards the request and streams the response to the client. */
  async pass(body = this.body): Promise<void> {
    const answer = await this.#target.deliver(this.#request, body)
    this.#response.writeHead(answer.statusCode!, endToEnd(answer.headers))
    answer.on('error', () => this.drop()).pipe(this.#response)
  }

  /** Forwards the request and returns the response without sending it to the client. */
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

  /** Sends the head of a response and half of its body. Resolves when they are written. */
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

  /** True when the client has disconnected. */
  get over(): boolean {
    return this.#response.destroyed
  }

  /** Sends a response byte by byte, with a pause after each byte. */
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
