import { spawn } from 'node:child_process'

/**
 * Runs a shell script when this process ends, even by SIGKILL, to clean up after it. A shell waits on a pipe, which the
 * kernel closes when this process ends.
 * @returns a function that cancels this
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
