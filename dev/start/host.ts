/**
 * Runs Workers in workerd, for `npm start`. A separate process in a separate process group: workerd ends when the parent process is
 * killed, and Ctrl-C reaches only the parent.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type RunningWorker, startWorker, type WorkerOptions } from '../worker.ts'

export type ToHost =
  | { do: 'start'; id: number; script: string; options: Omit<WorkerOptions, 'onLog' | 'outbound'> }
  | { do: 'stop'; id: number }
export type FromHost = { id: number; port: number } | { id: number; error: string }

const workers = new Map<number, RunningWorker>()

async function end() {
  await Promise.race([Promise.all([...workers.values()].map((one) => one.stop())), sleep(2000)])
  process.kill(-process.pid, 'SIGKILL')
}
process.on('disconnect', end)
process.on('uncaughtException', () => {}) // thrown when a Worker is stopped while it starts

process.on('message', async (message: ToHost) => {
  const { id } = message
  if (message.do === 'stop') {
    await workers.get(id)?.stop()
    workers.delete(id)
    return
  }
  const modules = { 'worker.js': { type: 'esm' as const, contents: message.script } }
  const early: string[] = []
  let onLog: (line: string) => void = (line) => early.push(line)
  try {
    const worker = await startWorker(
      { mainModule: 'worker.js', modules },
      { ...message.options, onLog: (line) => onLog(line) },
    )
    onLog = (line) => console.log(line)
    for (const line of early) onLog(line)
    workers.set(id, worker)
    process.send!({ id, port: Number(new URL(worker.url).port) } satisfies FromHost)
  } catch (error) {
    // workerd logs why the Worker does not start. Miniflare's error repeats this with advice.
    const [first] = (early[0] ?? (error as Error).message).split('\n')
    const reason = first!.replace(/^service \S+: Uncaught (Error: )?/, '')
    process.send!({ id, error: reason } satisfies FromHost)
  }
})
