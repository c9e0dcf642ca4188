/** The parts of the Workers runtime that this store uses. The package has no types of the runtime. */

/** `ctx.storage.kv`: the rows of the object's SQLite database, without waiting. */
export interface Rows {
  get(key: string): unknown
  put(key: string, value: unknown): void
  delete(key: string): boolean
  list(): Iterable<[key: string, value: unknown]>
}

/** The storage of an object. Its response waits until all writes are durable. */
export interface ObjectStorage {
  kv: Rows
  /** Runs a task whose writes all succeed, or none. */
  transactionSync(task: () => void): void
  getAlarm(): Promise<number | null>
  setAlarm(time: number): Promise<void>
  deleteAll(): Promise<void>
}

export interface ObjectContext {
  storage: ObjectStorage
  blockConcurrencyWhile<T>(task: () => Promise<T>): Promise<T>
}

export interface ObjectNamespace {
  idFromName(name: string): unknown
  get(
    id: unknown,
    options?: { locationHint?: string },
  ): { fetch(url: string, init: { method: 'POST'; body: string }): Promise<Response> }
  jurisdiction(name: string): ObjectNamespace
}
