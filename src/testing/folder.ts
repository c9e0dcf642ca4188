/** The temporary folder of a Worker, and the processes that use it. They end with this process, even if it is killed. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { ChildProcess } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterDeath } from 'sluice-upstash-bridge'

export type WorkerFolder = Awaited<ReturnType<typeof openFolder>>

/** The folder of the code that runs. */
const current = new AsyncLocalStorage<string | undefined>()

export async function openFolder() {
  const path = await mkdtemp(join(tmpdir(), 'sluice-testing-'))
  const cancel = afterDeath('rm -rf "$1"', path)
  // Miniflare does not report the processes that it starts. Node does.
  const watch = (message: unknown) => {
    const { process: child } = message as { process: ChildProcess }
    if (current.getStore() !== path) return
    child.once('spawn', () => {
      const script = 'kill -9 "$1" 2>/dev/null; rm -rf "$2"'
      const cancel = current.exit(() => afterDeath(script, String(child.pid), path))
      child.once('exit', cancel)
    })
  }
  subscribe('child_process', watch)
  return {
    path,
    /** Calls a function. Its temporary files are in the folder, and the processes that it starts end with this process. */
    run<Result>(call: () => Result): Result {
      const { TMPDIR } = process.env
      process.env.TMPDIR = path
      try {
        return current.run(path, call)
      } finally {
        if (TMPDIR === undefined) delete process.env.TMPDIR
        else process.env.TMPDIR = TMPDIR
      }
    },
    async remove() {
      unsubscribe('child_process', watch)
      await rm(path, { recursive: true, force: true })
      cancel()
    },
  }
}
