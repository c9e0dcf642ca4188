import type { ServerResponse } from 'node:http'
import { type Client, type Command, createRedis, RedisDown } from './connection.ts'
import { BadRequest } from './request.ts'

/** Maximum bytes that wait for a slow reader. Beyond it the bridge disconnects the reader, as Redis does. */
const MAX_BUFFERED_BYTES = 8 * 1024 * 1024

/** True for paths with a response of server-sent events. */
export function isStream(path: string): boolean {
  return /^\/(subscribe|psubscribe|monitor)(\/|$)/i.test(path)
}

/** Pub/sub and MONITOR as server-sent events: one connection to Redis for each reader. */
export class Streams {
  readonly #open = new Map<ServerResponse, Client>()

  /** Responds with a stream that ends when the reader disconnects or the bridge closes. */
  async open(command: Command, url: string, response: ServerResponse): Promise<void> {
    const [kind, ...names] = command.map((part) => part.toString())
    const isMonitor = kind?.toLowerCase() === 'monitor'
    if (!isMonitor && names.length === 0) {
      throw new BadRequest(`ERR wrong number of arguments for '${kind}' command`)
    }
    const client = createRedis(url, () => (this.#open.has(response) ? 100 : false))
    client.on('error', () => {}) // the client reconnects and subscribes again automatically
    await client.connect().catch((cause: Error) => {
      throw new RedisDown(`Redis is not reachable: ${cause.message}`, { cause })
    })
    this.#open.set(response, client)
    response.once('close', () => this.#end(response))
    if (response.destroyed) return this.#end(response)
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
    if (response.req.method === 'HEAD') return void response.end()
    const write = (text: string) => {
      // A line break ends a line of an event, so each line of a message becomes a `data:` line.
      const lines = text.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`)
      response.write(`${lines.join('')}\n`)
      if (response.writableLength > MAX_BUFFERED_BYTES) response.destroy()
    }
    if (isMonitor) {
      write('"OK"')
      await client.monitor((line) => write(String(line)))
    } else if (kind?.toLowerCase() === 'subscribe') {
      await announced(names, 'subscribe', write, (name, listener) =>
        client.subscribe(name, (message, channel) => listener(`message,${channel},${message}`)),
      )
    } else {
      await announced(names, 'psubscribe', write, (name, listener) =>
        client.pSubscribe(name, (message, channel) =>
          listener(`pmessage,${name},${channel},${message}`),
        ),
      )
    }
  }

  /** Ends all streams. */
  close(): void {
    for (const response of [...this.#open.keys()]) {
      this.#end(response)
      response.end()
    }
  }

  #end(response: ServerResponse): void {
    this.#open.get(response)?.destroy()
    this.#open.delete(response)
  }
}

/** Subscribes to the names in order, and writes the confirmation of each before its first message. */
async function announced(
  names: string[],
  kind: string,
  write: (text: string) => void,
  subscribe: (name: string, listener: (text: string) => void) => Promise<void>,
): Promise<void> {
  for (const [index, name] of names.entries()) {
    let early: string[] | undefined = []
    await subscribe(name, (text) => (early ? early.push(text) : write(text)))
    write(`${kind},${name},${index + 1}`)
    for (const text of early) write(text)
    early = undefined
  }
}
