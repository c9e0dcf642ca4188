/** Durable Objects in this process, for what a test must see inside of them. objects.ts runs the real ones. */
import type { ObjectNamespace, ObjectStorage } from '../../src/stores/durable-objects/runtime.ts'
import { SluiceSubject } from '../../src/stores/durable-objects/subject.ts'

interface MemoryObject {
  rows: Map<string, unknown>
  alarmAt: number | null
  /** The number of writes that fail. */
  fails: number
  subject: SluiceSubject
}

/** @param Subject the class of the objects */
export function memoryObjects(Subject = SluiceSubject) {
  const all = new Map<string, MemoryObject>()

  function storageOf(one: MemoryObject): ObjectStorage {
    const { rows } = one
    return {
      kv: {
        get: (key) => structuredClone(rows.get(key)),
        put(key, value) {
          if (one.fails-- > 0) throw new Error('SQLITE_FULL')
          rows.set(key, structuredClone(value))
        },
        delete: (key) => rows.delete(key),
        list: () => [...rows],
      },
      transactionSync(task) {
        const before = new Map(rows)
        try {
          task()
        } catch (error) {
          rows.clear()
          for (const [key, value] of before) rows.set(key, value)
          throw error
        }
      },
      getAlarm: async () => one.alarmAt,
      async setAlarm(time) {
        one.alarmAt = time
      },
      deleteAll: async () => rows.clear(),
    }
  }

  /** Starts the object of a name again, without its memory. */
  function restart(name: string): MemoryObject {
    const one = all.get(name) ?? ({ rows: new Map(), alarmAt: null, fails: 0 } as never)
    one.fails = 0
    one.subject = new Subject({
      storage: storageOf(one),
      blockConcurrencyWhile: (task) => task(),
    })
    all.set(name, one)
    return one
  }

  const objects: ObjectNamespace = {
    idFromName: (name) => name,
    get: (name) => ({
      fetch: (url, init) => {
        const one = all.get(name as string) ?? restart(name as string)
        return one.subject.fetch(new Request(url, init))
      },
    }),
    jurisdiction: () => objects,
  }
  return { objects, at: (name: string) => all.get(name)!, restart }
}
