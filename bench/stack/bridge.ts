import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { afterDeath, type Bill } from 'sluice-upstash-bridge'
import { variablesOf } from '../../src/base/bindings.ts'

const FILE = createRequire(import.meta.url).resolve('sluice-upstash-bridge/cli')

/** The bridge in a process of its own, so that nothing else delays it. */
export interface FarRedis {
  url: string
  token: string
  /** Where each of several databases is, for the Worker's environment. */
  variables?: Record<string, string>
  /** How many HTTP requests it has answered. */
  calls(): Promise<number>
  stop(): Promise<void>
}

/** @param rtt ms that it adds to each request */
export function startFarRedis(redis: string, rtt: number): Promise<FarRedis> {
  // Bare scripts: what Redis spends is to be its own, and it counts the commands inside by itself.
  return start('--redis', redis, '--rtt', `${rtt}`, '--no-check-keys')
}

/**
 * Several databases, each of which takes so many commands a second.
 * @param databases URLs by name
 */
export async function startFarDatabases(
  databases: Record<string, string>,
  rtt: number,
  maxCommands: number,
): Promise<FarRedis> {
  const targets = Object.entries(databases).flatMap(([name, url]) => ['--redis', `${url}=${name}`])
  const far = await start(...targets, '--rtt', `${rtt}`, '--max-commands', `${maxCommands}`)
  const variables = Object.keys(databases).map((name) => {
    const { url, token } = variablesOf(name)
    return { [url]: far.url, [token]: name }
  })
  return { ...far, variables: Object.assign({}, ...variables) }
}

async function start(...options: string[]): Promise<FarRedis> {
  const args = [FILE, '--port', '0', ...options]
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
