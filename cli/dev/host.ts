/**
 * Runs Workers in workerd, for `sluice dev`. A separate process in a separate process group: workerd ends when the parent process is
 * killed, and Ctrl-C reaches only the parent.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { miniflareOf } from '../project/tools.ts'
import { type RunningWorker, type Runtime, runWorkerd, type WorkerOptions } from './workerd.ts'

/** The bindings and settings of a Worker. Plain data, since one process sends it to another. */
export interface HostOptions extends Omit<WorkerOptions, 'port' | 'onLog' | 'outbound'> {
  /** The folder whose Miniflare runs the Worker. */
  project: string
  runtime: Omit<Runtime, 'miniflare'>
}

export type ToHost =
  | { do: 'start'; id: number; script: string; options: HostOptions }
  | { do: 'stop'; id: number }
export type FromHost = { id: number; port: number } | { id: number; error: string }

const workers = new Map<number, RunningWorker>()

async function end() {
  await Promise.race([Promise.all([...workers.values()].map((one) => one.stop())), sleep(2000)])
  process.kill(-process.pid, 'SIGKILL')
}
export function runHost() {
  process.on('disconnect', end)
  process.on('uncaughtException', () => {}) // thrown when a Worker is stopped while it starts
  process.on('message', answer)
}

async function answer(message: ToHost) {
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
    const { project, runtime, ...options } = message.options
    const worker = await runWorkerd(
      { miniflare: await miniflareOf(project), ...runtime },
      { mainModule: 'worker.js', modules },
      { ...options, onLog: (line) => onLog(line) },
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
}
