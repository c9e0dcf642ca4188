import type { ServerResponse } from 'node:http'
import { type Address, type Client, type Command, createRedis, RedisDown } from './connection.ts'
import { BadRequest } from './request.ts'

/** Maximum bytes that wait for a slow reader. Beyond it the bridge disconnects the reader, as Redis does. */
const MAX_BUFFERED_BYTES = 8 * 1024 * 1024

/** True for paths with a response of server-sent events. */
export function isStream(path: string): boolean {
  return /^\/(subscribe|psubscribe|monitor)(\/|$)/i.test(path)
}

/** How often to reconnect to a node, every 100 ms, before the stream ends and the reader has to reconnect. */
const RECONNECTS = 100

/** Pub/sub and MONITOR as server-sent events: one connection for each reader, and one to each node for MONITOR. */
export class Streams {
  readonly #open = new Map<ServerResponse, Client[]>()

  /**
   * Responds with a stream that ends when the reader disconnects, the bridge closes or a node stays down.
   * @param nodes the nodes that run commands. Pub/sub needs only one: a cluster sends messages to all its nodes
   */
  async open(command: Command, nodes: Address[], response: ServerResponse): Promise<void> {
    const [kind, ...names] = command.map((part) => part.toString())
    const isMonitor = kind?.toLowerCase() === 'monitor'
    if (!isMonitor && names.length === 0) {
      throw new BadRequest(`ERR wrong number of arguments for '${kind}' command`)
    }
    const clients = nodes
      .slice(0, isMonitor ? nodes.length : 1)
      .map((node) => this.#client(node, response))
    await Promise.all(clients.map((client) => client.connect())).catch((cause: Error) => {
      for (const client of clients) client.destroy()
      throw new RedisDown(`Redis is not reachable: ${cause.message}`, { cause })
    })
    this.#open.set(response, clients)
    const [client] = clients as [Client]
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
      await Promise.all(clients.map((one) => one.monitor((line) => write(String(line)))))
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

  #client(node: Address, response: ServerResponse): Client {
    const client = createRedis(node, (retries) =>
      this.#open.has(response) && retries < RECONNECTS ? 100 : false,
    )
    // The client reconnects and subscribes again automatically. It closes when the strategy returns false.
    client.on('error', () => {
      if (!client.isOpen && this.#open.has(response)) response.destroy()
    })
    return client
  }

  #end(response: ServerResponse): void {
    for (const client of this.#open.get(response) ?? []) client.destroy()
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
