/** The store on Durable Objects in workerd, for the tests of one file. */
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Miniflare } from 'miniflare'
import { afterAll, beforeAll } from 'vitest'
import { StoreError, type StoreErrorCode } from '../../src/core/base/errors.ts'
import type {
  Store,
  StoreOptions,
  StoreRequest,
  StoreResult,
} from '../../src/core/connection/store.ts'
import type { KeptState, Slots } from '../../src/stores/durable-objects/record.ts'
import { compatibilityDate } from '../../tools/build.ts'
import { bundled } from './bundled.ts'
import type { Answer, PlainReply, Step } from './objects-worker.ts'

/** A file system in memory: each new object is a database of its own, and a disk takes long to sync thousands of them. */
const MEMORY = '/dev/shm'

/** The rows of an object by key. */
export interface StoredRows {
  record?: { value: [string, KeptState][]; expires: number }
  [log: `log:${string}`]: { value: number[]; expires: number }
  [slots: `slots:${string}`]: { value: Slots[]; expires: number }
}

export interface Objects {
  /** Its calls of one tick run one after the other. */
  store: Store
  /** Calls an endpoint of the object of a subject (objects-worker.ts). */
  call<T = unknown>(
    path: Exclude<Step['do'], 'decide' | 'clock'>,
    subject: string,
    body?: unknown,
  ): Promise<T>
  /** Sends one request to the Worker, which runs concurrent ones at the same time (objects-worker.ts). Returns its JSON. */
  post<T>(path: '/alone' | '/shared' | '/calls', body?: string): Promise<T>
  /** The time in the Worker, ms since the epoch. */
  clock(): Promise<number>
  /** Ends the object of a subject, as when it has been idle for a while. Its memory is lost. */
  evict(subject: string): Promise<void>
}

const worker = {
  name: 'objects',
  compatibilityDate,
  exports: { SluiceSubject: { type: 'durable-object', storage: 'sqlite' } },
  env: {
    SLUICE_SUBJECT: { type: 'durable-object', worker: 'objects', exportName: 'SluiceSubject' },
  },
}

export function useObjects(): Objects {
  let miniflare: Miniflare
  let folder: string
  let waiting: { step: Step; answer: (answer: Answer) => void; fail: (error: unknown) => void }[] =
    []

  beforeAll(async () => {
    const manifest = await bundled('test/support/objects-worker.ts')
    folder = await mkdtemp(join(existsSync(MEMORY) ? MEMORY : tmpdir(), 'sluice-objects-'))
    miniflare = new Miniflare({
      host: '127.0.0.1',
      port: 0,
      resourcePersistencePath: folder,
      workers: [{ config: { ...worker, manifest } }],
    } as unknown as ConstructorParameters<typeof Miniflare>[0])
    await miniflare.ready
  })
  afterAll(async () => {
    await miniflare.dispose()
    await rm(folder, { recursive: true, force: true })
  })

  function send(step: Step): Promise<Answer> {
    if (waiting.length === 0) setImmediate(flush)
    return new Promise((answer, fail) => waiting.push({ step, answer, fail }))
  }
  function flush() {
    const sent = waiting
    waiting = []
    const body = JSON.stringify(sent.map(({ step }) => step))
    miniflare
      .dispatchFetch('http://objects/', { method: 'POST', body })
      .then((response) => response.json() as Promise<Answer[]>)
      .then((answers) => {
        for (const [index, { answer }] of sent.entries()) answer(answers[index]!)
      })
      .catch((error) => {
        for (const { fail } of sent) fail(error)
      })
  }

  async function decideEach(
    lists: StoreRequest[][],
    { now, idempotency }: StoreOptions = {},
  ): Promise<StoreResult[]> {
    const options = {
      ...(now !== undefined && { now }),
      ...(idempotency && { idempotency }),
    }
    const answer = await send({ do: 'decide', lists, options })
    return (answer as { replies: PlainReply[] }).replies.map((reply) =>
      'code' in reply ? failed(reply.code, reply.message) : reply,
    )
  }

  return {
    store: {
      decideEach,
      async decide(list, options) {
        const [reply] = await decideEach([list], options)
        if (reply instanceof StoreError) throw reply
        return reply!
      },
    },
    async call(path, subject, body) {
      return ((await send({ do: path, subject, body })) as { value: never }).value
    },
    async post(path, body = '') {
      const response = await miniflare.dispatchFetch(`http://objects${path}`, {
        method: 'POST',
        body,
      })
      return (await response.json()) as never
    },
    clock: async () => ((await send({ do: 'clock' })) as { value: number }).value,
    evict: (name) => miniflare.unsafeEvictDurableObject('objects', 'SluiceSubject', { name }),
  }
}

function failed(code: StoreErrorCode, message: string): StoreError {
  const error = new StoreError(code)
  error.message = message
  return error
}
