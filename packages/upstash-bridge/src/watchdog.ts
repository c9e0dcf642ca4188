import { spawn } from 'node:child_process'

/**
 * Runs a shell script when this process ends without a chance to clean up (SIGKILL): a shell waits on a pipe
 * whose other end only we hold, and the kernel closes that with us.
 * @returns calls it off
 */
export function afterDeath(script: string, ...args: string[]): () => void {
  const shell = spawn('sh', ['-c', `read -r line; ${script}`, 'sh', ...args], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  shell.on('error', () => {})
  shell.stdin.on('error', () => {})
  shell.unref()
  return () => void shell.kill('SIGKILL')
}
