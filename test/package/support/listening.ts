import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import type { StartedProgram } from './consumer.ts'

/** How long a server may take until it listens. */
const START_MS = 60_000

/** Waits until a server accepts connections. Sends no request. */
export async function listening(port: number, { exited }: StartedProgram): Promise<void> {
  const deadline = Date.now() + START_MS
  while (Date.now() < deadline) {
    const socket = connect(port, '127.0.0.1')
    const connected = once(socket, 'connect').then(
      () => true,
      () => setTimeout(100, false),
    )
    const ready = await Promise.race([connected, exited]).finally(() => socket.destroy())
    if (ready) return
  }
  throw new Error(`The server does not listen after ${START_MS / 1000} s.`)
}
