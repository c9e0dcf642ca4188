import { once } from 'node:events'
import { connect } from 'node:net'

/** A connection to Redis with little overhead, because the laws send millions of commands. */
export interface Connection {
  /** Sends a command. All commands of one tick go in one write, in order. Rejects with the error of Redis. */
  sendCommand(command: readonly string[]): Promise<unknown>
  destroy(): void
}

export async function openConnection(url: string): Promise<Connection> {
  const { hostname, port, username, password } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port || 6379), noDelay: true })
  await once(socket, 'connect')
  const waiting: PromiseWithResolvers<unknown>[] = []
  let output = ''
  let input = ''

  function flush() {
    socket.write(output)
    output = ''
  }
  // In latin1 one character is one byte, and the lengths in the protocol are in bytes.
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    input += chunk
    let from = 0
    for (let read = readReply(input, 0); read; read = readReply(input, from)) {
      from = read.end
      const { resolve, reject } = waiting.shift()!
      if (read.value instanceof Error) reject(read.value)
      else resolve(read.value)
    }
    input = input.slice(from)
  })
  socket.on('error', () => {})
  socket.on('close', () => {
    for (const { reject } of waiting.splice(0)) reject(new Error('the connection to Redis closed'))
  })

  const connection: Connection = {
    sendCommand(command) {
      if (socket.destroyed) return Promise.reject(new Error('the connection to Redis is closed'))
      if (output === '') queueMicrotask(flush)
      output += `*${command.length}\r\n`
      for (const part of command) output += `$${Buffer.byteLength(part)}\r\n${part}\r\n`
      const reply = Promise.withResolvers<unknown>()
      waiting.push(reply)
      return reply.promise
    },
    destroy: () => void socket.destroy(),
  }
  if (password) await connection.sendCommand(['AUTH', username || 'default', password])
  return connection
}

interface Read {
  value: unknown
  /** The position of the next reply. */
  end: number
}

/** Reads the RESP2 reply at `from`. Returns undefined if the reply is incomplete. */
function readReply(input: string, from: number): Read | undefined {
  const lineEnd = input.indexOf('\r\n', from)
  if (lineEnd < 0) return undefined
  const line = input.slice(from + 1, lineEnd)
  let end = lineEnd + 2
  switch (input[from]) {
    case '-':
      return { value: new Error(utf8(line)), end }
    case ':':
      return { value: Number(line), end }
    case '$': {
      const length = Number(line)
      if (length < 0) return { value: null, end }
      if (input.length < end + length + 2) return undefined
      return { value: utf8(input.slice(end, end + length)), end: end + length + 2 }
    }
    case '*': {
      const values: unknown[] = []
      for (let left = Number(line); left > 0; left--) {
        const item = readReply(input, end)
        if (!item) return undefined
        values.push(item.value)
        end = item.end
      }
      return { value: values, end }
    }
    default:
      return { value: utf8(line), end }
  }
}

const utf8 = (latin1: string) =>
  /[\x80-\xff]/.test(latin1) ? Buffer.from(latin1, 'latin1').toString() : latin1
