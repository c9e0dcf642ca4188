import { fork } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { startVictim } from './stack.ts'

/** Commands whose answers are no replies of a script. */
const SPOILED = [
  ['ECHO', '<html>502 Bad Gateway</html>'],
  ['LLEN', 'none'],
  ['GET', 'none'],
  ['NO-SUCH-COMMAND'],
  ['ECHO', '{}'],
  ['LRANGE', 'none', '0', '-1'],
  ['ECHO', '1795895382403 1.5 -1'],
]

/** Starts a Node server with its own client of Redis, on free loopback ports, with a relay in between. */
export async function startClientStack() {
  const redis = await startVictim()
  const relay = await startRelay(redis.url)
  const child = fork(fileURLToPath(new URL('client-server.ts', import.meta.url)), {
    env: { ...process.env, REDIS_URL: relay.url, SLUICE_SECRET: 'chaos' },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  const logs: string[] = []
  child.stderr!.setEncoding('utf8').on('data', (text) => logs.push(...text.trim().split('\n')))
  const [port] = await once(child, 'message')
  return {
    ...redis,
    ...relay,
    worker: { url: `http://127.0.0.1:${port}`, logs },
    async stop() {
      child.kill()
      relay.close()
      await redis.stop()
    },
  }
}

/** Passes commands to Redis, or others in their place, so that answers stay in order. */
async function startRelay(target: string) {
  let delayMs = 0
  let spoiled: Buffer | undefined
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const redis = connect(Number(new URL(target).port), '127.0.0.1')
    for (const [one, other] of [
      [client, redis],
      [redis, client],
    ] as const) {
      sockets.add(one)
      one
        .on('error', () => {})
        .on('close', () => {
          sockets.delete(one)
          other.destroy()
        })
    }
    let rest: Buffer = Buffer.alloc(0)
    client.on('data', (chunk) => {
      const { commands, left } = split(Buffer.concat([rest, chunk]))
      rest = left
      for (const command of commands)
        redis.write(spoiled && /\r\neval(sha)?\r\n/.test(head(command)) ? spoiled : command)
    })
    redis.on('data', (answer) => {
      if (delayMs > 0) setTimeout(() => client.write(answer), delayMs)
      else client.write(answer)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    delay(ms: number) {
      delayMs = ms
    },
    spoil(turn: number | undefined) {
      const parts = turn === undefined ? undefined : SPOILED[turn % SPOILED.length]!
      const text = parts?.map((part) => `$${part.length}\r\n${part}\r\n`).join('')
      spoiled = parts && Buffer.from(`*${parts.length}\r\n${text}`)
    },
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

const head = (command: Buffer) => command.subarray(0, 40).toString('latin1')

/** The whole commands of a stream: lists of texts (RESP). */
function split(stream: Buffer): { commands: Buffer[]; left: Buffer } {
  const commands: Buffer[] = []
  let start = 0
  for (;;) {
    let at = start
    /** Reads a number up to the end of its line; -1 if the line is not whole. */
    const number = () => {
      const end = stream.indexOf('\r\n', at)
      if (end < 0) return -1
      const value = Number(stream.toString('latin1', at + 1, end))
      at = end + 2
      return value
    }
    let parts = number()
    while (parts > 0) {
      const length = number()
      if (length < 0) break
      at += length + 2
      parts -= 1
    }
    if (parts !== 0 || at > stream.length) return { commands, left: stream.subarray(start) }
    commands.push(stream.subarray(start, at))
    start = at
  }
}
