/** Reads the cost of a response in its body, or counts its bytes. It passes unchanged. Ends a stream whose budget is used up. */
import { countsBytes } from '../../core/config/schema/reads.ts'
import { counts, type Kept, type Metering } from '../../core/decide/settle.ts'
import { pipeFor } from '../../core/respond/body-end.ts'
import { Allowance, type StreamEnd } from './allowance.ts'
import { EventEnds } from './event-ends.ts'
import { decompressing, type Reader, readerFor } from './readers.ts'
import { Usage } from './usage.ts'

/**
 * Meters a response.
 * @param maxBytes the longest JSON response and the longest event that are read
 */
export function meterBody(
  answer: Response,
  metering: Metering,
  maxBytes: number,
): Response | undefined {
  const { headers, status } = answer
  if ((answer as { webSocket?: unknown }).webSocket) return undefined
  const body = metering.isSent ? answer.body : null
  // The charge of a limit that does not count this status is refunded.
  const counted = metering.limits.filter(({ policy, cost }) => cost > 0 && counts(policy, status))
  const sized = counted.filter(({ policy }) => countsBytes(policy))
  const keepSize = (bytes: number, kept: Kept) => {
    for (const limit of sized) kept.set(limit, Math.min(bytes, limit.policy.cost.max ?? bytes))
    return kept
  }
  if (!body) {
    if (sized.length === 0) return undefined
    metering.end(keepSize(0, new Map()))
    return answer
  }
  const limits = counted.filter(({ policy }) => policy.cost.usage)
  const usages = limits.map((limit) => new Usage(limit))
  const found =
    limits.length > 0 ? readerFor(headers.get('content-type') ?? '', usages, maxBytes) : undefined
  if (!found && sized.length === 0) return undefined

  const encoding = headers.get('content-encoding')?.trim().toLowerCase() ?? ''
  const reader = found && decompressing(found.reader, encoding)
  const allowances = found
    ? limits.map((limit, index) => new Allowance(limit, usages[index]!, metering))
    : []
  const cutting = found?.isStream
    ? allowances.filter(({ limit: { policy } }) => policy.cost.cut && policy.mode === 'enforce')
    : []
  const { readable, writable } = pipeFor(answer)
  const isPlain = /^(identity)?$/.test(encoding) && !headers.has('content-length')
  const passage = new Passage(body, writable, reader, cutting, isPlain)
  passage.run().then(async (isWhole) => {
    await Promise.all(cutting.map((one) => one.renewing)) // its units are refunded too
    const kept = keepSize(passage.passed, new Map())
    for (const one of allowances) one.divide(one.usage.cost(isWhole), kept)
    metering.end(kept)
  })
  return new Response(readable, answer)
}

/** One body on its way to the client. */
class Passage {
  readonly #source: ReadableStreamDefaultReader<Uint8Array>
  readonly #target: WritableStreamDefaultWriter<Uint8Array>
  readonly #reader: Reader | undefined
  /** The limits that may end the stream. */
  readonly #cutting: Allowance[]
  /** True if an event can be added to the stream. */
  readonly #isPlain: boolean
  readonly #ends = new EventEnds()
  #isOpen = true
  /** The bytes that the runtime has taken for the client. */
  passed = 0

  constructor(
    body: ReadableStream<Uint8Array>,
    writable: WritableStream<Uint8Array>,
    reader: Reader | undefined,
    cutting: Allowance[],
    isPlain: boolean,
  ) {
    this.#source = body.getReader()
    this.#target = writable.getWriter()
    this.#reader = reader
    this.#cutting = cutting
    this.#isPlain = isPlain
    // The client has disconnected, perhaps while the origin is silent.
    this.#target.closed.catch(() => this.#hangUp())
  }

  /**
   * Passes the body on.
   * @returns true if it has passed completely. Never rejects.
   */
  async run(): Promise<boolean> {
    let isWhole = false
    try {
      while (this.#isOpen) {
        const { done, value } = await this.#source.read()
        if (done) {
          isWhole = this.#isOpen
          break
        }
        if (!(await (this.#cutting.length > 0 ? this.#passEvents(value) : this.#pass(value)))) {
          await this.#cut()
          break
        }
      }
      if (isWhole) await this.#target.close()
    } catch (error) {
      // The origin has broken off, or the client has disconnected.
      isWhole = false
      this.#hangUp()
      this.#target.abort(error).catch(() => {})
    }
    await this.#reader?.end()
    return isWhole
  }

  /** Writes before it reads, so that reading delays no byte. */
  async #pass(bytes: Uint8Array): Promise<true> {
    const writing = this.#write(bytes)
    await (this.#reader ? Promise.all([writing, this.#reader.feed(bytes)]) : writing)
    return true
  }

  async #write(bytes: Uint8Array): Promise<void> {
    await this.#target.write(bytes)
    this.passed += bytes.length
  }

  /** Passes events until the budget is gone. Returns false if the stream must end. */
  async #passEvents(bytes: Uint8Array): Promise<boolean> {
    if (!this.#isPlain) {
      await this.#pass(bytes)
      return this.#mayGoOn()
    }
    let read = 0
    let passed = 0
    const pass = (end: number) => {
      const part = bytes.subarray(passed, end)
      passed = end
      return part.length > 0 ? this.#write(part) : undefined
    }
    for (const end of this.#ends.endsIn(bytes)) {
      this.#reader!.feed(bytes.subarray(read, end))
      read = end
      const goesOn = this.#mayGoOn()
      if (goesOn === true) continue
      await pass(end)
      if (!(await goesOn)) return false
      if (!this.#isOpen) return true // the client has disconnected meanwhile
    }
    this.#reader!.feed(bytes.subarray(read))
    await pass(bytes.length)
    return true
  }

  #mayGoOn(): boolean | Promise<boolean> {
    const answers = this.#cutting.map((one) => one.mayGoOn())
    if (answers.includes(false)) return false
    const waiting = answers.filter((one) => one !== true)
    return waiting.length === 0 || Promise.all(waiting).then((all) => all.every(Boolean))
  }

  /** Ends the stream with an event, or breaks it off if it is compressed or has a known length. */
  async #cut(): Promise<void> {
    this.#source.cancel().catch(() => {})
    const refusal = this.#cutting.find((one) => one.refusal)!.refusal!
    if (!this.#isPlain) throw new Error('the quota is used up')
    await this.#write(new TextEncoder().encode(finalEvent(refusal)))
    await this.#target.close()
  }

  #hangUp(): void {
    this.#isOpen = false
    this.#source.cancel().catch(() => {})
  }
}

/** The last event of a stream that ends early. The client libraries of OpenAI and Anthropic throw it as an error. */
function finalEvent({ policy, max, retryAfterMs }: StreamEnd): string {
  const message =
    max === undefined
      ? `The quota "${policy}" is used up.`
      : `The response has reached its maximum of ${max} units of "${policy}".`
  const error = {
    type: 'rate_limit_error',
    code: 'rate_limit_exceeded',
    message,
    policy,
    ...(max === undefined && { retryAfterMs }),
  }
  return `event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`
}
