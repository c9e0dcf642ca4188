/** The Durable Object of one subject. It decides a call without waiting between the first read and the last write. */
import { decideList } from './decide.ts'
import type { ObjectContext } from './runtime.ts'
import { StoredParts } from './stored-parts.ts'
import type { ObjectAnswer, ObjectCall } from './wire.ts'

/** How long the object remembers the id of a call, ms. A Worker repeats a call within its deadline. */
const REMEMBERED_MS = 5_000
/** Within this time after a request the next one is dense, ms. So long after the last one the exact counts are written. */
const DENSE_MS = 500

/**
 * The Durable Object of one subject: export it from the Worker, and bind it as `SLUICE_SUBJECT` with a class that uses SQLite.
 * @example
 * export { SluiceSubject } from 'sluice/durable-objects'
 */
export class SluiceSubject {
  /** Makes the class fit the types of a binding. Has no value. */
  declare readonly __DURABLE_OBJECT_BRAND: never
  readonly #parts: StoredParts
  /** The answers of the last calls by id, in order. */
  readonly #answers = new Map<string, { text: string; until: number }>()
  #calledAt = 0
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(ctx: ObjectContext) {
    this.#parts = new StoredParts(ctx.storage)
    ctx.blockConcurrencyWhile(() => this.#parts.readAlarm())
  }

  async fetch(request: Request): Promise<Response> {
    const call = (await request.json()) as ObjectCall
    return new Response(this.#answer(call), { headers: { 'Content-Type': 'application/json' } })
  }

  /** Deletes what has expired. An object without state leaves nothing in the storage. */
  async alarm(): Promise<void> {
    this.#parts.writeBack()
    await this.#parts.expire(Date.now())
  }

  #answer(call: ObjectCall): string {
    const time = Date.now()
    for (const [id, { until }] of this.#answers) {
      if (until > time) break
      this.#answers.delete(id)
    }
    const known = this.#answers.get(call.id)
    if (known) return known.text
    let text: string
    try {
      text = JSON.stringify(this.#decide(call, time))
    } catch (error) {
      this.#parts.forget() // a failed write: the memory may be ahead of the storage
      throw error
    }
    this.#answers.set(call.id, { text, until: time + REMEMBERED_MS })
    return text
  }

  #decide({ lists, now, idempotency }: ObjectCall, time: number): ObjectAnswer {
    const decidedAt = now ?? time
    const parts = this.#parts
    parts.begin(decidedAt, time)
    const stored = idempotency && parts.reply(idempotency.key, decidedAt)
    if (stored) {
      const { fingerprint, replies } = stored
      return fingerprint === idempotency.fingerprint && replies.length === lists.length
        ? { replies: replies.map((reply) => ({ ...reply, replayed: true })) }
        : { refused: 'idempotency-conflict' }
    }
    const replies = lists.map((list) => ({ decidedAt, states: decideList(parts, list, decidedAt) }))
    if (idempotency) {
      const { key, fingerprint, forMs } = idempotency
      parts.setReply(key, { fingerprint, until: decidedAt + forMs, replies })
    }
    const isDense = time - this.#calledAt < DENSE_MS
    this.#calledAt = time
    parts.save(lists, isDense)
    if (parts.isAhead) this.#timer ??= setTimeout(() => this.#writeBack(), DENSE_MS)
    return { replies }
  }

  /** Writes the exact counts once the subject is quiet. */
  #writeBack() {
    const time = Date.now()
    const quietMs = time - this.#calledAt
    this.#timer = undefined
    if (quietMs < DENSE_MS) {
      this.#timer = setTimeout(() => this.#writeBack(), DENSE_MS - quietMs)
      return
    }
    this.#parts.writeBack()
  }
}
