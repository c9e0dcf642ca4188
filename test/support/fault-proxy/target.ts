import { Agent as HttpAgent, type IncomingMessage, request as overHttp } from 'node:http'
import { Agent as HttpsAgent, request as overHttps } from 'node:https'
import { buffer } from 'node:stream/consumers'

/** The database behind the proxy: anything that serves the Upstash REST API. */
export class Target {
  /** Number of forwarded requests by command name in lower case. */
  readonly delivered: Record<string, number> = {}
  readonly #url: URL
  readonly #agent: HttpAgent

  constructor(url: string) {
    this.#url = new URL(url)
    this.#agent = this.#secure
      ? new HttpsAgent({ keepAlive: true })
      : new HttpAgent({ keepAlive: true })
  }

  get #secure(): boolean {
    return this.#url.protocol === 'https:'
  }

  /** Forwards a request, even if its client has disconnected, as a network does. */
  deliver(request: IncomingMessage, body: Buffer): Promise<IncomingMessage> {
    count(this.delivered, body)
    return this.#send(request, request.url!, body)
  }

  /** Sends another command with the credentials of a request. */
  async command(request: IncomingMessage, command: string[]): Promise<void> {
    await buffer(await this.#send(request, '/', Buffer.from(JSON.stringify(command))))
  }

  close(): void {
    this.#agent.destroy()
  }

  #send({ method, headers }: IncomingMessage, path: string, body: Buffer) {
    const send = this.#secure ? overHttps : overHttp
    const base = this.#url.pathname.replace(/\/$/, '')
    return new Promise<IncomingMessage>((resolve, reject) => {
      send(new URL(base + path, this.#url), {
        method,
        headers: { ...endToEnd(headers), host: this.#url.host, 'content-length': body.length },
        agent: this.#agent,
      })
        .on('response', resolve)
        .on('error', reject)
        .end(body)
    })
  }
}

/** Drops the hop-by-hop header fields. */
export function endToEnd(headers: IncomingMessage['headers']): IncomingMessage['headers'] {
  const { connection: _, 'keep-alive': __, 'transfer-encoding': ___, host: ____, ...rest } = headers
  return rest
}

/** Counts a request by the name of its command, or as `other` if it is not a single command. */
export function count(counts: Record<string, number>, body: Buffer): void {
  const name = String(commandIn(body)?.[0] ?? 'other').toLowerCase()
  counts[name] = (counts[name] ?? 0) + 1
}

/** The command in a body; `undefined` if the body is not a single command. */
export function commandIn(body: Buffer): unknown[] | undefined {
  try {
    const command = JSON.parse(body.toString())
    return Array.isArray(command) && typeof command[0] === 'string' ? command : undefined
  } catch {
    return undefined
  }
}
