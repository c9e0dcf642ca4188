/** Durable Objects for `startWorker`. */
import { existsSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WORKER_NAME } from '../../cli/dev/workerd.ts'
import type { MoreBindings } from '../../cli/project/bindings.ts'

const SLUICE_SUBJECT = {
  type: 'durable-object',
  worker: WORKER_NAME,
  exportName: 'SluiceSubject',
}

/** The binding of the class of `durableObjects()`. */
export const objectBinding: MoreBindings = {
  bindings: { SLUICE_SUBJECT },
  config: { exports: { SluiceSubject: { type: 'durable-object', storage: 'sqlite' } } },
}

/** A new folder in memory: each object has a database of its own, and a disk takes long to sync thousands of them. */
export const memoryFolder = (prefix: string) =>
  mkdtemp(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), prefix))
