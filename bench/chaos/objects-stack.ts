import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startOrigin } from '../../cli/dev/origin.ts'
import { build } from '../../dev/build.ts'
import { startWorker } from '../../dev/worker.ts'
import { type ObjectFault, objectFaults } from './objects-worker.ts'
import { type Phase, wait } from './phases.ts'

/** A file system in memory: each object has a database of its own, and a disk takes long to sync thousands of them. */
const MEMORY = '/dev/shm'

export type ObjectsStack = Awaited<ReturnType<typeof startObjectsStack>>

/** Starts the origin, and a Worker whose objects can fail, on free loopback ports. */
export async function startObjectsStack() {
  const folder = await mkdtemp(join(existsSync(MEMORY) ? MEMORY : tmpdir(), 'sluice-chaos-'))
  const built = join(folder, 'worker')
  await build(built, 'bench/chaos/objects-worker.ts')
  const origin = await startOrigin()
  const worker = await startWorker(built, {
    env: { ORIGIN: origin.url, SLUICE_SECRET: 'chaos' },
    persist: join(folder, 'state'),
    more: {
      bindings: {
        SLUICE_SUBJECT: {
          type: 'durable-object',
          ...{ worker: 'sluice', exportName: 'SluiceSubject' },
        },
      },
      config: { exports: { SluiceSubject: { type: 'durable-object', storage: 'sqlite' } } },
    },
  })
  return {
    worker,
    async set(fault: ObjectFault | '') {
      const { ok } = await fetch(`${worker.url}/fault`, { method: 'POST', body: fault })
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
