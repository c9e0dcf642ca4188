import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * Finds a free TCP port on loopback. Another process may take the port before the caller uses it: a server, but not an outgoing connection,
 * because systems give those the ports from 32768.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 1; ; attempt++) {
    const port = randomInt(10_000, 30_000)
    try {
      const probe = createServer().listen(port, '127.0.0.1')
      await once(probe, 'listening')
      probe.close()
      await once(probe, 'close')
      return port
    } catch (error) {
      if (attempt === 100) throw error
    }
  }
}
