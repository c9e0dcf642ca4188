import { afterDeath } from 'sluice-upstash-bridge'
import { openConnection } from './redis-connection.ts'

/** Suspends a Redis with its connections open. @returns a function that resumes it */
export async function freeze(url: string): Promise<() => void> {
  const client = await openConnection(url)
  const [, pid] = /process_id:(\d+)/.exec(String(await client.sendCommand(['INFO', 'server'])))!
  client.destroy()
  process.kill(Number(pid), 'SIGSTOP')
  // A suspended Redis does not react to the SIGTERM of its own watchdog.
  const cancel = afterDeath('kill -CONT "$1" 2>/dev/null', pid!)
  return () => {
    cancel()
    process.kill(Number(pid), 'SIGCONT')
  }
}
