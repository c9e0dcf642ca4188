/** The store on Durable Objects: one object for each subject, one call for each decision. */
import { asStoreError, StoreError, type StoreErrorCode } from '../../core/base/errors.ts'
import { connect } from '../../core/connection/connection.ts'
import {
  type OnRefund,
  type Store,
  type StoreOptions,
  type StoreRequest,
  storeBy,
} from '../../core/connection/store.ts'
import { inGroups, subjectOf } from '../split/groups.ts'
import { createSplitStore } from '../split/split.ts'
import type { ObjectNamespace } from './runtime.ts'
import { isAnswer, written } from './wire.ts'

export interface ObjectOptions {
  /** The binding of the class. Undefined if the Worker has none: then every decision fails with `not-configured`. */
  objects: ObjectNamespace | undefined
  binding: string
  /** A part of every object's name that separates applications. Defaults to none. */
  namespace?: string | undefined
  locationHint?: string | undefined
  /** Lets concurrent decisions for one subject share a call. */
  batching: boolean
}

/** A store whose lists each have one subject. */
export function createObjectStore(options: ObjectOptions): Store {
  const { batching } = options
  /** The stores of the subjects with calls in flight. */
  const busy = new Map<string, { store: Store; calls: number }>()

  /** Runs a call on the store of a subject. Concurrent calls share the store, so that they can share a call. */
  async function onStore<T>(subject: string, run: (store: Store) => Promise<T>): Promise<T> {
    if (!batching) return run(storeOf(subject, options))
    const entry = busy.get(subject) ?? { store: connect(storeOf(subject, options)), calls: 0 }
    busy.set(subject, entry)
    entry.calls += 1
    try {
      return await run(entry.store)
    } finally {
      entry.calls -= 1
      if (entry.calls === 0) busy.delete(subject)
    }
  }

  // The wait of the caller belongs to the connection of all objects.
  return storeBy((lists, { deadline: _, ...given }) =>
    inGroups(lists, subjectOf, async (groups) => {
      const deciding = groups.map(([, own]) =>
        onStore(subjectOf(own[0]!), (store) => store.decideEach(own, given)),
      )
      return (await Promise.all(deciding)).flat()
    }),
  )
}

/** Splits requests with limits of several subjects: each object charges all of its limits, or none. The lists of `store` have one subject. */
export const spreadBySubject = (store: Store, onRefund: OnRefund): Store =>
  createSplitStore(
    (subject) => subject,
    (parts, options) => Promise.all(parts.map(({ lists }) => store.decideEach(lists, options))),
    onRefund,
  )

function storeOf(subject: string, options: ObjectOptions): Store {
  async function call(lists: StoreRequest[][], { now, idempotency }: StoreOptions) {
    const body = written({ id: crypto.randomUUID(), lists, now, idempotency })
    // An object that has lost its memory since would return the units twice.
    const once = lists.flat().some(({ mode }) => mode === 'refund')
    const answer = await send(subject, body, options, once)
    if (!isAnswer(answer, lists)) throw notOurs()
    if ('refused' in answer) throw new StoreError(answer.refused)
    return answer.replies
  }
  return storeBy((lists, given) =>
    call(lists, given).catch((error) => lists.map(() => asStoreError(error))),
  )
}

/** Sends a call to the object of a subject. Unless `once`, sends it again if the object was restarted: the id charges it once. */
async function send(
  subject: string,
  body: string,
  { objects, binding, namespace, locationHint }: ObjectOptions,
  once: boolean,
): Promise<unknown> {
  if (!objects)
    throw saying('not-configured', `add a binding ${binding} of the class SluiceSubject`)
  const name = namespace === undefined ? subject : `${namespace}:${subject}`
  const id = objects.idFromName(name)
  for (let isLast = once; ; isLast = true) {
    try {
      // A stub that has thrown may stay broken.
      const stub = objects.get(id, locationHint === undefined ? {} : { locationHint })
      const response = await stub.fetch('https://object/', { method: 'POST', body })
      if (!response.ok) throw new StoreError('bad-reply', `status ${response.status}`)
      return await response.json()
    } catch (error) {
      const { retryable, overloaded } = error as { retryable?: boolean; overloaded?: boolean }
      if (isLast || !retryable || overloaded) throw toStoreError(error)
    }
  }
}

/** The hint of an error of one object. The circuit breaker ignores it: the objects of other subjects work. */
const OVERLOADED = 'ERR sluice: overloaded'

function toStoreError(error: unknown): StoreError {
  if (error instanceof StoreError) return error
  const { message = '', overloaded } = Object(error) as { message?: string; overloaded?: boolean }
  if (overloaded)
    return saying('unreachable', 'the object has more requests than it can answer', OVERLOADED)
  if (error instanceof SyntaxError) return notOurs()
  if (/free tier/i.test(message))
    return saying('over-quota', 'the daily limits of the free plan are used up')
  if (/SQLITE_FULL|storage limit/i.test(message))
    return saying('database-full', 'the storage of the object is full')
  return saying('unreachable', 'the object did not answer')
}

const notOurs = () => saying('bad-reply', 'the answer is not that of SluiceSubject')

/** The messages of `StoreError` are about a database. */
function saying(code: StoreErrorCode, meaning: string, hint?: string): StoreError {
  const error = new StoreError(code, hint)
  error.message = `${code}: ${meaning}`
  return error
}
