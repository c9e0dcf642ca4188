import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A TCP proxy in front of one Redis, which passes a limited number of commands per second. */
export interface Gate {
  port: number
  /** Forwards connections to this port from now on. */
  open(port: number): void
  /** Number of commands that have passed. */
  passed(): number
  close(): void
}

/** A command that waits for its turn. */
interface Waiting {
  bytes: Buffer
  to: Socket
}

/** @param perSecond maximum commands per second, over all connections. Further commands wait, in the order of their arrival */
export async function startGate(perSecond: number): Promise<Gate> {
  const queue: Waiting[] = []
  const sockets = new Set<Socket>()
  let target = 0
  let passed = 0
  /** When the next command may pass, in ms of `performance.now()`. */
  let free = 0
  let timer: NodeJS.Timeout | undefined

  function pass() {
    timer = undefined
    const now = performance.now()
    // A late timer lets all commands pass that were due. A gate without commands saves nothing for later.
    for (; queue.length > 0 && free <= now; free += 1000 / perSecond) {
      const { bytes, to } = queue.shift()!
      passed++
      if (to.writable) to.write(bytes)
    }
    if (queue.length > 0) timer = setTimeout(pass, free - now)
  }

  const server = createServer((client) => {
    const redis = connect(target, '127.0.0.1')
    for (const [one, other] of [
      [client, redis],
      [redis, client],
    ] as const) {
      sockets.add(one)
      one.setNoDelay(true)
      one.on('error', () => {})
      one.on('close', () => {
        sockets.delete(one)
        other.destroy()
      })
    }
    redis.pipe(client)
    let rest: Buffer = Buffer.alloc(0)
    client.on('data', (chunk) => {
      rest = Buffer.concat([rest, chunk])
      for (let end = commandEnd(rest); end > 0; end = commandEnd(rest)) {
        if (queue.length === 0) free = Math.max(free, performance.now())
        queue.push({ bytes: rest.subarray(0, end), to: redis })
        rest = rest.subarray(end)
      }
      if (!timer) pass()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    open: (port) => {
      target = port
    },
    passed: () => passed,
    close() {
      clearTimeout(timer)
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** The length of the first command in the bytes, an array of bulk strings; 0 if it is not complete. */
function commandEnd(bytes: Buffer): number {
  let at = 0
  // Before each of these numbers there is one byte for the type, and after it CR and LF.
  for (let strings = -1; strings !== 0; strings--) {
    const end = bytes.indexOf('\r\n', at)
    if (end < 0) return 0
    const value = Number(bytes.toString('latin1', at + 1, end))
    if (strings < 0) strings = value + 1
    at = end + 2 + (at === 0 ? 0 : value + 2)
  }
  return at <= bytes.length ? at : 0
}
