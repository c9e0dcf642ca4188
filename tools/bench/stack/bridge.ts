import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { afterDeath, type Bill } from 'sluice-upstash-bridge'

const FILE = createRequire(import.meta.url).resolve('sluice-upstash-bridge/main')

/** The bridge in a separate process, so that nothing else delays it. */
export interface FarRedis {
  url: string
  token: string
  /** Number of HTTP requests answered. */
  calls(): Promise<number>
  stop(): Promise<void>
}

/** @param rtt latency in ms that the bridge adds to each request */
export function startFarRedis(redis: string, rtt: number): Promise<FarRedis> {
  // Unchanged scripts, to measure the CPU of Redis alone. INFO commandstats counts the commands inside.
  return start('--redis', redis, '--rtt', `${rtt}`, '--no-check-keys')
}

/** Starts a bridge with the default settings to a Redis Cluster. @param node the URL of one of its nodes */
export function startFarCluster(node: string, rtt: number): Promise<FarRedis> {
  return start('--cluster', new URL(node).host, '--rtt', `${rtt}`)
}

async function start(...options: string[]): Promise<FarRedis> {
  const args = [FILE, '--port', '0', ...options]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] })
  const cancel = afterDeath('kill -9 "$1" 2>/dev/null', `${child.pid}`)
  let output = ''
  child.stdout.setEncoding('utf8')
  for await (const text of child.stdout) {
    output += text
    if (output.includes('TOKEN=')) break
  }
  const [, url, token] = /URL=(\S+)\n.*TOKEN=(\S+)/.exec(output) ?? []
  if (!url || !token) throw new Error('The bridge did not start.')
  const headers = { Authorization: `Bearer ${token}` }
  return {
    url,
    token,
    calls: async () => ((await (await fetch(`${url}/__stats`, { headers })).json()) as Bill).http,
    async stop() {
      cancel()
      if (child.exitCode !== null) return
      child.kill('SIGKILL') // a regular stop would wait for idle connections
      await once(child, 'exit')
    },
  }
}
