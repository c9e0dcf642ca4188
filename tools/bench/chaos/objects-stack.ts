import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { startOrigin } from '../../../cli/dev/origin.ts'
import { buildEntry } from '../../build.ts'
import { startWorker } from '../../worker.ts'
import { memoryFolder, objectBinding } from '../object-binding.ts'
import { type ObjectFault, objectFaults } from './objects-worker.ts'
import { type Phase, wait } from './phases.ts'

export type ObjectsStack = Awaited<ReturnType<typeof startObjectsStack>>

/** Starts the origin, and a Worker whose objects can fail, on free loopback ports. */
export async function startObjectsStack() {
  const folder = await memoryFolder('sluice-chaos-')
  const built = join(folder, 'worker')
  await buildEntry(built, 'tools/bench/chaos/objects-worker.ts')
  const origin = await startOrigin()
  const worker = await startWorker(built, {
    env: { ORIGIN: origin.url, SLUICE_SECRET: 'chaos' },
    persist: join(folder, 'state'),
    more: objectBinding,
  })
  return {
    worker,
    async set(fault: ObjectFault | '') {
      const post = () => fetch(`${worker.url}/fault`, { method: 'POST', body: fault })
      // workerd may close an idle connection at the moment it is used again.
      const { ok } = await post().catch(post)
      if (!ok) throw new Error(`The Worker has not set the fault "${fault}".`)
    },
    async stop() {
      await worker.stop()
      await origin.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

export const objectPhases: Phase<ObjectsStack>[] = [
  { name: 'none' },
  ...objectFaults.map((name) => ({
    name,
    async hurt(stack: ObjectsStack, ms: number, signal: AbortSignal) {
      await stack.set(name)
      await wait(ms, signal).finally(() => stack.set(''))
    },
  })),
]
