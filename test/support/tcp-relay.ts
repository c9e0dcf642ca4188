/** A relay in front of Redis, which loses what a test says. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/**
 * - `pass`: passes everything.
 * - `hold`: accepts connections, and passes nothing until `release`.
 * - `lose-reply`: passes a script, closes the connection instead of passing its answer, and then passes everything.
 * - `lose-call`: closes the connection when a client sends a script, and then passes everything.
 * - any other text: answers it to a script instead of Redis, such as `-LOADING …`
 */
export type Relay = 'pass' | 'hold' | 'lose-reply' | 'lose-call' | `-${string}`

export async function startRelay(redis: string, { port = 0, does = 'pass' as Relay } = {}) {
  const target = new URL(redis)
  const sockets = new Set<Socket>()
  const relay = {
    does,
    url: '',
    /** The connections of clients so far. */
    accepted: 0,
    /** Those that are open. */
    get open() {
      return sockets.size / 2
    },
    /** Passes nothing more from the open connections. */
    pause() {
      for (const socket of sockets) socket.pause()
    },
    /** Closes the connections. */
    drop() {
      for (const socket of sockets) socket.destroy()
    },
    release() {
      relay.does = 'pass'
      for (const socket of sockets) socket.resume()
    },
    /** Closes the connections, and accepts no other one. */
    async stop() {
      server.close()
      relay.drop()
      if (server.listening) await once(server, 'close')
    },
  }
  const server = createServer((socket) => {
    relay.accepted += 1
    const other = connect(Number(target.port), target.hostname)
    const link = [socket, other] as const
    const close = () => {
      for (const one of link) {
        one.destroy()
        sockets.delete(one)
      }
    }
    for (const one of link) {
      sockets.add(one)
      one.on('error', close).on('close', close)
    }
    const lose = () => {
      relay.does = 'pass'
      close()
    }
    let hasScript = false
    socket.on('data', (sent) => {
      hasScript = sent.includes('eval')
      if (!hasScript) other.write(sent)
      else if (relay.does === 'lose-call') lose()
      else if (relay.does.startsWith('-')) socket.write(`${relay.does}\r\n`)
      else other.write(sent)
    })
    other.on('data', (answer) => {
      if (relay.does === 'lose-reply' && hasScript) lose()
      else socket.write(answer)
    })
    if (relay.does === 'hold') socket.pause()
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  relay.url = `redis://127.0.0.1:${(server.address() as AddressInfo).port}`
  return relay
}
