/** The parts of a subject in the storage of its object, one row each. */
import type { StoreReply, StoreRequest } from '../../core/connection/store.ts'
import { type CountTerms, isEqual, recordToStore } from './ahead.ts'
import type { KeptState, Parts, Record, Slots } from './record.ts'
import type { ObjectStorage } from './runtime.ts'

/** How long expired rows stay before the alarm deletes them, ms. A client that returns within this time costs no second alarm. */
const GRACE_MS = 3_600_000
/** The longest time to an alarm, ms. The runtime counts in ns: an alarm after the year 2262 would go off at once. */
const MAX_ALARM_MS = 365 * 86_400_000
/** How much longer rows stay if the caller sends the time, ms: the object deletes rows by its own clock. */
const ROOM_MS = 60_000

/** The reply to a call with an idempotency key. */
export interface StoredReply {
  fingerprint: string
  /** ms since the epoch */
  until: number
  replies: StoreReply[]
}

interface StoredRow<T> {
  value: T
  /** When the alarm may delete the row, ms since the epoch. */
  expires: number
}

const RECORD = 'record'

export class StoredParts implements Parts {
  readonly #storage: ObjectStorage
  #record: Record | undefined
  /** The record in the storage. It is never less strict than the one in memory. */
  #stored: Record = new Map()
  readonly #counts = new Map<string, CountTerms>()
  /** The other parts that were read or changed, by key. */
  readonly #known = new Map<string, unknown>()
  /** The replies of this life of the object by key, oldest first, until the first decision after they expire. */
  readonly #replies = new Map<string, StoredRow<StoredReply>>()
  /** The parts that have changed: their values and their ends, ms since the epoch. */
  readonly #changes = new Map<string, { value: unknown; end: number }>()
  /** When the alarm goes off, ms since the epoch. */
  #alarmAt: number | null = null
  /** The time of the last decision, ms since the epoch. */
  #decidedAt = 0
  /** By how much longer rows stay than by the time of the last decision, ms. Not 0 only if the caller sends the time. */
  #behindMs = 0

  constructor(storage: ObjectStorage) {
    this.#storage = storage
  }

  async readAlarm(): Promise<void> {
    this.#alarmAt = await this.#storage.getAlarm()
  }

  get record(): Record {
    if (!this.#record) {
      const row = this.#storage.kv.get(RECORD) as StoredRow<[string, KeptState][]> | undefined
      this.#record = this.#stored = new Map(row?.value)
    }
    return this.#record
  }
  set record(record: Record) {
    this.#record = record
  }

  log = (tag: string): readonly number[] => this.#read(`log:${tag}`) ?? []
  setLog(tag: string, times: readonly number[], end: number): void {
    this.#change(`log:${tag}`, times.length > 0 ? times : undefined, end)
  }

  slots = (tag: string): readonly Slots[] => this.#read(`slots:${tag}`) ?? []
  setSlots(tag: string, slots: readonly Slots[], end: number): void {
    this.#change(`slots:${tag}`, slots.length > 0 ? slots : undefined, end)
  }

  reply(key: string, now: number): StoredReply | undefined {
    const stored = this.#replies.get(key)?.value ?? this.#rowOf<StoredReply>(`reply:${key}`)
    return stored && stored.until > now ? stored : undefined
  }
  setReply(key: string, value: StoredReply): void {
    this.#replies.delete(key) // it becomes the newest
    this.#replies.set(key, { value, expires: this.#expiry(value.until) })
    this.#changes.set(`reply:${key}`, { value, end: value.until })
  }

  #forgetReplies(time: number) {
    for (const [key, { expires }] of this.#replies) {
      if (expires > time) break
      this.#replies.delete(key)
      this.#changes.set(`reply:${key}`, { value: undefined, end: 0 })
    }
  }

  #read<T>(key: string): T | undefined {
    if (!this.#known.has(key)) this.#known.set(key, this.#rowOf(key))
    return this.#known.get(key) as T | undefined
  }

  #rowOf<T>(key: string): T | undefined {
    return (this.#storage.kv.get(key) as StoredRow<T> | undefined)?.value
  }

  #change(key: string, value: unknown, end: number) {
    if (value === undefined && this.#read(key) === undefined) return
    this.#known.set(key, value)
    this.#changes.set(key, { value, end })
  }

  /** True if the stored counts are ahead of those in memory. */
  get isAhead(): boolean {
    for (const [tag, state] of this.#record ?? []) {
      const stored = this.#stored.get(tag)
      if (!stored || !isEqual(stored, state)) return true
    }
    return false
  }

  /** Begins a decision. @param now its time, and `time` that of the object's clock, ms since the epoch */
  begin(now: number, time: number): void {
    this.#decidedAt = now
    this.#behindMs = time === now ? 0 : time - now + ROOM_MS
    this.#forgetReplies(time)
  }

  /** Writes all changes of a decision, or none. A dense subject, which has made a request shortly before, has its counts written ahead. */
  save(lists: StoreRequest[][], isDense: boolean): void {
    for (const { limits } of lists.flat()) {
      for (const { terms } of limits) this.#counts.set(terms.tag, terms)
    }
    const own = this.#record
    const record = own && recordToStore(this.#stored, own, this.#counts, isDense)
    if (!record && this.#changes.size === 0) return
    this.#storage.transactionSync(() => {
      if (record) this.#writeRecord(record)
      for (const [key, { value, end }] of this.#changes) this.#write(key, value, end)
    })
    this.#changes.clear()
  }

  writeBack(): void {
    if (this.isAhead) this.#writeRecord(this.record)
  }

  #writeRecord(record: Record) {
    let end = 0
    for (const state of record.values()) end = Math.max(end, state.end)
    this.#write(RECORD, record.size > 0 ? [...record] : undefined, end)
    this.#stored = record
  }

  #write(key: string, value: unknown, end: number) {
    const { kv } = this.#storage
    if (value === undefined) {
      kv.delete(key)
      return
    }
    const expires = this.#expiry(end)
    kv.put(key, { value, expires } satisfies StoredRow<unknown>)
    if (this.#alarmAt === null) this.#setAlarm(expires)
  }

  /** When a row may be deleted, by the object's clock. What has ended by the caller's clock counts again if this clock moves back. */
  #expiry = (end: number) => Math.max(end, this.#decidedAt) + this.#behindMs

  #setAlarm(expires: number) {
    this.#alarmAt = Math.min(expires + GRACE_MS, Date.now() + MAX_ALARM_MS)
    void this.#storage.setAlarm(this.#alarmAt)
  }

  /** Forgets the memory. The next decision reads the storage. */
  forget(): void {
    this.#record = undefined
    this.#stored = new Map()
    this.#known.clear()
    this.#replies.clear()
    this.#changes.clear()
  }

  /** Deletes rows that have expired, and the whole storage if none is left. */
  async expire(time: number): Promise<void> {
    const { kv } = this.#storage
    this.#alarmAt = null
    this.forget()
    let last = 0
    const expired: string[] = []
    for (const [key, row] of kv.list()) {
      const { expires } = row as StoredRow<unknown>
      last = Math.max(last, expires)
      if (expires <= time) expired.push(key)
    }
    if (last <= time) {
      await this.#storage.deleteAll()
      return
    }
    for (const key of expired) kv.delete(key)
    this.#setAlarm(last)
  }
}
