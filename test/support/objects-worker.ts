/**
 * A Worker with the store on Durable Objects alone. It runs the steps in the body of a POST one after the other. At `/alone` and `/shared`
 * the body is one list of requests; concurrent ones run at the same time, and at `/shared` those for one subject share calls.
 */
import { StoreError } from '../../src/core/base/errors.ts'
import type {
  Store,
  StoreOptions,
  StoreReply,
  StoreRequest,
  StoreResult,
} from '../../src/core/connection/store.ts'
import { createObjectStore, spreadBySubject } from '../../src/stores/durable-objects/objects.ts'
import type { ObjectContext, ObjectNamespace } from '../../src/stores/durable-objects/runtime.ts'
import { SluiceSubject as Subject } from '../../src/stores/durable-objects/subject.ts'

export type Step =
  | {
      do: 'decide'
      lists: StoreRequest[][]
      options: Pick<StoreOptions, 'now' | 'idempotency'>
    }
  | { do: 'clock' }
  /** Calls an endpoint of the object of a subject. */
  | {
      do: '/call' | '/dump' | '/rows' | '/load' | '/fail' | '/abort' | '/crash' | '/alarm'
      subject: string
      body?: unknown
    }

/** A reply, or the parts of an error. */
export type PlainReply = StoreReply | Pick<StoreError, 'code' | 'message'>
export type Answer = { replies: PlainReply[] } | { value: unknown }

/** A moment at which an object can be aborted. */
export type Moment =
  `${'before' | 'after'} ${'call' | 'get' | 'put' | 'transaction' | 'getAlarm' | 'setAlarm'}`
/** The moment at which an object is aborted when it comes to it, and the id of the object. */
let crash: { moment: Moment; id: string } | undefined

interface Context extends ObjectContext {
  id: { toString(): string }
  abort(reason: string): void
}

/** The object, with access to its storage. */
export class SluiceSubject extends Subject {
  readonly #ctx: Context
  /** The keys of the rows that were written. */
  readonly #written: string[]
  #fails = 0

  constructor(ctx: Context) {
    const written: string[] = []
    const { storage } = ctx
    const { kv } = storage
    const failing = () => {
      if (this.#fails-- > 0) throw new Error('SQLITE_FULL: no space')
    }
    /** Runs an operation, before or after which the object may be aborted. */
    function passing<T>(operation: string, work: () => T): T {
      meet(`before ${operation}`)
      const result = work()
      meet(`after ${operation}`)
      return result
    }
    const meet = (moment: string) => abortAt(ctx, moment)
    super({
      blockConcurrencyWhile: (task) => ctx.blockConcurrencyWhile(task),
      storage: {
        kv: {
          get: (key) => passing('get', () => kv.get(key)),
          list: () => kv.list(),
          delete: (key) => kv.delete(key) && written.push(key) > 0,
          put: (key, value) => {
            if (this.#fails > 0) failing()
            written.push(key)
            passing('put', () => kv.put(key, value))
          },
        },
        transactionSync: (task) => passing('transaction', () => storage.transactionSync(task)),
        getAlarm: () => passing('getAlarm', () => storage.getAlarm()),
        setAlarm: (time) => {
          written.push('alarm')
          return passing('setAlarm', () => storage.setAlarm(time))
        },
        deleteAll: () => storage.deleteAll(),
      },
    })
    this.#ctx = ctx
    this.#written = written
  }

  override async fetch(request: Request): Promise<Response> {
    calls += 1
    const { kv } = this.#ctx.storage
    switch (new URL(request.url).pathname) {
      case '/dump': // all rows, with the exact counts
        await this.alarm()
        return Response.json([...kv.list()])
      case '/alarm':
        await this.alarm()
        return Response.json([[...kv.list()], await this.#ctx.storage.getAlarm()])
      case '/rows':
        return Response.json(this.#written.splice(0))
      case '/load':
        for (const [key, value] of (await request.json()) as [string, unknown][]) kv.put(key, value)
        return Response.json([])
      case '/fail': // the next writes
        this.#fails = (await request.json()) as number
        return Response.json([])
      case '/abort':
        this.#ctx.abort('as the test asks')
        return Response.json([])
      default: {
        abortAt(this.#ctx, 'before call')
        const response = await super.fetch(request)
        abortAt(this.#ctx, 'after call')
        return response
      }
    }
  }
}

function abortAt(ctx: Context, moment: string) {
  if (crash?.moment !== moment || crash.id !== String(ctx.id)) return
  crash = undefined
  ctx.abort('as the test asks')
}

/** The calls of objects so far. */
let calls = 0
/** Kept by the isolate, as a limiter does: only then can calls be shared. */
const kept: Record<string, Store> = {}

function concurrent(path: string, objects: ObjectNamespace): Store {
  const batching = path === '/shared'
  const options = { objects, binding: 'SLUICE_SUBJECT', batching }
  kept[path] ??= spreadBySubject(createObjectStore(options), () => {})
  return kept[path]
}

const plain = (reply: StoreResult): PlainReply =>
  reply instanceof StoreError ? { code: reply.code, message: reply.message } : reply

export default {
  async fetch(
    request: Request,
    env: { SLUICE_SUBJECT: ObjectNamespace },
    context: { waitUntil(promise: Promise<unknown>): void },
  ) {
    const { SLUICE_SUBJECT: objects } = env
    const { pathname } = new URL(request.url)
    if (pathname === '/calls') return Response.json(calls)
    if (pathname !== '/') {
      const list = (await request.json()) as StoreRequest[]
      const waitUntil = (promise: Promise<unknown>) => context.waitUntil(promise)
      const store = concurrent(pathname, objects)
      return Response.json(await store.decide(list, { deadlineMs: 20_000, waitUntil }))
    }
    const store = spreadBySubject(
      createObjectStore({ objects, binding: 'SLUICE_SUBJECT', batching: false }),
      () => {},
    )
    const answers: Answer[] = []
    for (const step of (await request.json()) as Step[]) {
      if (step.do === 'decide') {
        const work: Promise<unknown>[] = []
        const options = {
          ...step.options,
          waitUntil: (promise: Promise<unknown>) => void work.push(promise),
        }
        const { lists } = step
        const replies =
          lists.length === 1
            ? [await store.decide(lists[0]!, options).catch((error: StoreError) => error)]
            : await store.decideEach(lists, options)
        // A refund adds its work when it begins.
        for (let done = 0; done < work.length; done = work.length) await Promise.allSettled(work)
        answers.push({ replies: replies.map(plain) })
        continue
      }
      if (step.do === 'clock') {
        answers.push({ value: Date.now() })
        continue
      }
      const id = objects.idFromName(step.subject)
      if (step.do === '/crash') {
        // At a moment of the next calls, or null. Answers with the moment that the object has not come to yet.
        answers.push({ value: crash?.moment ?? null })
        const moment = step.body as Moment | null
        crash = moment ? { moment, id: String(id) } : undefined
        continue
      }
      const stub = objects.get(id)
      const body = JSON.stringify(step.body ?? null)
      const value = await stub
        .fetch(`https://object${step.do}`, { method: 'POST', body })
        .then((response) => response.json())
        .catch(({ message }) => ({ error: message }))
      answers.push({ value })
    }
    return Response.json(answers)
  },
}
