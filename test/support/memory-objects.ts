/** Durable Objects in this process, for what a test must see inside of them. objects.ts runs the real ones. */
import type { ObjectNamespace, ObjectStorage } from '../../src/stores/durable-objects/runtime.ts'
import { SluiceSubject } from '../../src/stores/durable-objects/subject.ts'

type Operation =
  | 'call'
  | 'get'
  | 'put'
  | 'delete'
  | 'list'
  | 'transaction'
  | 'getAlarm'
  | 'setAlarm'
  | 'deleteAll'

/** A moment at which an object can end. */
export type Moment = `${'before' | 'after'} ${Operation}`

/** Thrown at a moment: ends the object, and with it its memory, its timers and its transaction. */
export class Crash extends Error {}

/** An object from its start to its end. */
interface Life {
  hasEnded: boolean
  /** Resolves when the object takes calls. */
  ready: Promise<unknown>
}

interface MemoryObject {
  rows: Map<string, unknown>
  alarmAt: number | null
  life: Life
  subject: SluiceSubject
}

/**
 * @param Subject the class of the objects
 * @param meet runs at each moment. What it throws is an error of the storage, or the end of the object
 */
export function memoryObjects(
  Subject = SluiceSubject,
  meet: (moment: Moment, name: string) => void = () => {},
) {
  const all = new Map<string, MemoryObject>()

  /** Nothing happens to an object that has ended, or that ends now. */
  function pass(name: string, life: Life, moment: Moment) {
    if (life.hasEnded) throw new Crash()
    try {
      meet(moment, name)
    } catch (error) {
      if (error instanceof Crash) life.hasEnded = true
      throw error
    }
  }

  function storageOf(name: string, one: MemoryObject, life: Life): ObjectStorage {
    const { rows } = one
    function doing<T>(operation: Operation, work: () => T): T {
      pass(name, life, `before ${operation}`)
      const result = work()
      pass(name, life, `after ${operation}`)
      return result
    }
    return {
      kv: {
        get: (key) => doing('get', () => structuredClone(rows.get(key))),
        put: (key, value) => doing('put', () => void rows.set(key, structuredClone(value))),
        delete: (key) => doing('delete', () => rows.delete(key)),
        list: () => doing('list', () => [...rows]),
      },
      transactionSync: (task) =>
        doing('transaction', () => {
          const before = new Map(rows)
          try {
            task()
          } catch (error) {
            rows.clear()
            for (const [key, value] of before) rows.set(key, value)
            throw error
          }
        }),
      getAlarm: async () => doing('getAlarm', () => one.alarmAt),
      // What this throws ends the call, like a write that fails at the end of its transaction.
      setAlarm: (time) =>
        doing('setAlarm', () => {
          one.alarmAt = time
          return Promise.resolve()
        }),
      deleteAll: async () => doing('deleteAll', () => rows.clear()),
    }
  }

  /** Starts the object of a name again, without its memory. */
  function restart(name: string): MemoryObject {
    const one = all.get(name) ?? ({ rows: new Map(), alarmAt: null } as never as MemoryObject)
    if (one.life) one.life.hasEnded = true
    const life: Life = { hasEnded: false, ready: Promise.resolve() }
    one.life = life
    one.subject = new Subject({
      storage: storageOf(name, one, life),
      blockConcurrencyWhile(task) {
        const done = task()
        life.ready = done.catch(() => {
          life.hasEnded = true
        })
        return done.catch(() => undefined as never)
      },
    })
    all.set(name, one)
    return one
  }

  /** The object of a name, which a call or an alarm starts. */
  function running(name: string): MemoryObject {
    const one = all.get(name)
    return one && !one.life.hasEnded ? one : restart(name)
  }

  async function call<T>(name: string, work: (subject: SluiceSubject) => Promise<T>): Promise<T> {
    const { life, subject } = running(name)
    try {
      await life.ready
      pass(name, life, 'before call')
      const result = await work(subject)
      pass(name, life, 'after call')
      return result
    } catch (error) {
      if (life.hasEnded) throw Object.assign(new Error('the object has ended'), { retryable: true })
      throw error
    }
  }

  const objects: ObjectNamespace = {
    idFromName: (name) => name,
    get: (name) => ({
      fetch: (url, init) =>
        call(name as string, (subject) => subject.fetch(new Request(url, init))),
    }),
    jurisdiction: () => objects,
  }
  return {
    objects,
    at: (name: string) => all.get(name)!,
    restart,
    /** Lets the alarm of an object go off. */
    alarm: (name: string) => call(name, (subject) => subject.alarm()),
  }
}
