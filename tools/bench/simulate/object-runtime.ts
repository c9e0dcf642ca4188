/** The runtime of one Durable Object in virtual time. It counts what Cloudflare bills. */
import type { ObjectNamespace, ObjectStorage } from '../../../src/stores/durable-objects/runtime.ts'
import { SluiceSubject } from '../../../src/stores/durable-objects/subject.ts'
import type { VirtualTime } from './time.ts'

/** What Cloudflare bills for an object. */
export interface Bill {
  /** Requests and alarms. */
  requests: number
  /** A put, a deletion and the setting of an alarm write one row each. */
  rowsWritten: number
  rowsRead: number
  /** The time in which the object works, or waits for a timer, ms. */
  activeMs: number
}

/** An idle object that waits for no timer loses its memory after this time, ms. */
const IDLE_MS = 10_000
/** How long the object works on a call or an alarm, ms: reading the body, deciding, and the write. An assumption. */
const WORK_MS = 5

/** Runs one object. Its timers are those of the process, which `time` has replaced. */
export function createObject(time: VirtualTime): { objects: ObjectNamespace; bill: Bill } {
  const bill: Bill = { requests: 0, rowsWritten: 0, rowsRead: 0, activeMs: 0 }
  const rows = new Map<string, unknown>()
  let alarmAt: number | null = null
  let timers = 0
  let busyUntil = 0
  let subject: SluiceSubject | undefined

  /** Bills the time from now on, without what is already billed. */
  function busy(ms: number) {
    const from = Math.max(busyUntil, time.now())
    busyUntil = Math.max(busyUntil, time.now() + ms)
    bill.activeMs += busyUntil - from
  }

  const setTimer = globalThis.setTimeout
  globalThis.setTimeout = ((task: () => void, ms: number) => {
    timers += 1
    busy(ms)
    return setTimer(() => {
      timers -= 1
      task()
    }, ms)
  }) as never

  const storage: ObjectStorage = {
    kv: {
      get(key) {
        bill.rowsRead += 1
        return structuredClone(rows.get(key))
      },
      put(key, value) {
        bill.rowsWritten += 1
        rows.set(key, structuredClone(value))
      },
      delete(key) {
        bill.rowsWritten += 1
        return rows.delete(key)
      },
      list() {
        bill.rowsRead += rows.size
        return [...rows]
      },
    },
    transactionSync: (task) => task(),
    getAlarm: async () => alarmAt,
    async setAlarm(at) {
      bill.rowsWritten += 1
      alarmAt = at
      time.at(at, () => (alarmAt === at ? ring() : undefined))
    },
    async deleteAll() {
      bill.rowsWritten += rows.size
      rows.clear()
    },
  }

  /** The object, which has lost its memory if it was idle. */
  function awake(): SluiceSubject {
    if (!subject || (timers === 0 && time.now() > busyUntil + IDLE_MS)) {
      subject = new SluiceSubject({ storage, blockConcurrencyWhile: (task) => task() })
    }
    bill.requests += 1
    busy(WORK_MS)
    return subject
  }
  async function ring() {
    alarmAt = null
    await awake().alarm()
  }

  const objects: ObjectNamespace = {
    idFromName: (name) => name,
    get: () => ({ fetch: (url, init) => awake().fetch(new Request(url, init)) }),
    jurisdiction: () => objects,
  }
  return { objects, bill }
}
