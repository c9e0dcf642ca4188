import { createClient } from 'redis'
import { afterDeath } from 'sluice-upstash-bridge'

/** Suspends a Redis with its connections open. @returns a function that resumes it */
export async function freeze(url: string): Promise<() => void> {
  const client = await createClient({ url }).connect()
  const [, pid] = /process_id:(\d+)/.exec(await client.info('server'))!
  client.destroy()
  process.kill(Number(pid), 'SIGSTOP')
  // A suspended Redis does not react to the SIGTERM of its own watchdog.
  const cancel = afterDeath('kill -CONT "$1" 2>/dev/null', pid!)
  return () => {
    cancel()
    process.kill(Number(pid), 'SIGCONT')
  }
}
