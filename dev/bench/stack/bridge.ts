import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Bill } from '../../bridge.ts'
import { afterDeath } from '../../watchdog.ts'

const FILE = fileURLToPath(new URL('../../bridge.ts', import.meta.url))

/** The bridge in a process of its own, so that nothing else delays it. */
export interface FarRedis {
  url: string
  token: string
  /** How many HTTP requests it has answered. */
  calls(): Promise<number>
  stop(): Promise<void>
}

/** @param rtt ms that it adds to each request */
export async function startFarRedis(redis: string, rtt: number): Promise<FarRedis> {
  // Bare scripts: what Redis spends is to be its own, and it counts the commands inside by itself.
  const args = [FILE, '--redis', redis, '--port', '0', '--rtt', `${rtt}`, '--no-check-keys']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] })
  const callOff = afterDeath('kill -9 "$1" 2>/dev/null', `${child.pid}`)
  let said = ''
  child.stdout.setEncoding('utf8')
  for await (const text of child.stdout) {
    said += text
    if (said.includes('TOKEN=')) break
  }
  const [, url, token] = /URL=(\S+)\n.*TOKEN=(\S+)/.exec(said) ?? []
  if (!url || !token) throw new Error('the bridge did not start')
  const headers = { Authorization: `Bearer ${token}` }
  return {
    url,
    token,
    calls: async () => ((await (await fetch(`${url}/__stats`, { headers })).json()) as Bill).http,
    async stop() {
      callOff()
      if (child.exitCode !== null) return
      child.kill('SIGKILL') // it keeps nothing, and would wait for idle connections
      await once(child, 'exit')
    },
  }
}
