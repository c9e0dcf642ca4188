/** Reads the cost of a response in its body, or counts its bytes. It passes unchanged. Ends a stream whose budget is used up. */
import { countsBytes } from '../../core/config/schema/reads.ts'
import { counts, type Kept, type Metering } from '../../core/decide/settle.ts'
import { pipeFor } from '../../core/respond/body-end.ts'
import { type Allowance, allowanceOf, type StreamEnd } from './allowance.ts'
import { decompressing, EventEnds, type Reader, readerFor } from './readers.ts'

/** The longest JSON response and the longest event that are read. Each response in flight may use this much memory. */
const MAX_BYTES = 1024 * 1024

export function meterBody(answer: Response, metering: Metering, maxBytes = MAX_BYTES) {
  const { headers, status } = answer
  if ((answer as { webSocket?: unknown }).webSocket) return undefined
  const body = metering.isSent ? answer.body : null
  // The charge of a limit that does not count this status is refunded.
  const counted = metering.limits.filter(({ terms, cost }) => cost > 0 && counts(terms, status))
  const sized = counted.filter(({ terms }) => countsBytes(terms))
  const sizes = (bytes: number): Kept =>
    new Map(sized.map((limit) => [limit, Math.min(bytes, limit.terms.cost.max ?? bytes)]))
  if (!body) {
    if (sized.length === 0) return undefined
    metering.end(sizes(0))
    return answer
  }
  const allowances = counted
    .filter(({ terms }) => terms.cost.usage)
    .map((limit) => allowanceOf(limit, metering))
  const usages = allowances.map(({ usage }) => usage)
  const found = usages[0] && readerFor(headers.get('content-type') ?? '', usages, maxBytes)
  if (!found && sized.length === 0) return undefined

  const encoding = headers.get('content-encoding')?.trim().toLowerCase() ?? ''
  const reader = found && decompressing(found.reader, encoding)
  const cutting = found?.isStream
    ? allowances.filter(({ limit: { terms } }) => terms.cost.cut && terms.mode === 'enforce')
    : []
  const { readable, writable } = pipeFor(answer)
  const isPlain = /^(identity)?$/.test(encoding) && !headers.has('content-length')
  const passing = pass(body, writable, reader, cutting, isPlain)
  passing.then(async ({ isWhole, passed }) => {
    await Promise.all(cutting.map((one) => one.renewing)) // its units are refunded too
    const kept = sizes(passed)
    for (const one of found ? allowances : []) one.divide(one.usage.cost(isWhole), kept)
    metering.end(kept)
  })
  return new Response(readable, answer)
}

/**
 * Passes a body on to the client. Never rejects.
 * @param cutting the limits that may end the stream
 * @param isPlain true if an event can be added to the stream
 * @returns if it has passed completely, and the bytes that the runtime has taken for the client
 */
async function pass(
  body: ReadableStream<Uint8Array>,
  writable: WritableStream<Uint8Array>,
  reader: Reader | undefined,
  cutting: Allowance[],
  isPlain: boolean,
): Promise<{ isWhole: boolean; passed: number }> {
  const source = body.getReader()
  const target = writable.getWriter()
  const ends = new EventEnds()
  let isOpen = true
  let isWhole = false
  let passed = 0

  function hangUp() {
    isOpen = false
    source.cancel().catch(() => {})
  }

  async function write(bytes: Uint8Array): Promise<void> {
    await target.write(bytes)
    passed += bytes.length
  }

  /** Writes before it reads, so that reading delays no byte. */
  async function writeAndRead(bytes: Uint8Array): Promise<true> {
    const writing = write(bytes)
    await (reader ? Promise.all([writing, reader.feed(bytes)]) : writing)
    return true
  }

  /** Passes events until the budget is gone. Returns false if the stream must end. */
  async function passEvents(bytes: Uint8Array): Promise<boolean> {
    if (!isPlain) {
      await writeAndRead(bytes)
      return mayGoOn(cutting)
    }
    let read = 0
    let written = 0
    const writeTo = (end: number) => {
      const part = bytes.subarray(written, end)
      written = end
      return part.length > 0 ? write(part) : undefined
    }
    for (const end of ends.endsIn(bytes)) {
      reader!.feed(bytes.subarray(read, end))
      read = end
      const goesOn = mayGoOn(cutting)
      if (goesOn === true) continue
      await writeTo(end)
      if (!(await goesOn)) return false
      if (!isOpen) return true // the client has disconnected meanwhile
    }
    reader!.feed(bytes.subarray(read))
    await writeTo(bytes.length)
    return true
  }

  /** Ends the stream with an event, or breaks it off if it is compressed or has a known length. */
  async function cut(): Promise<void> {
    source.cancel().catch(() => {})
    const refusal = cutting.find((one) => one.refusal)!.refusal!
    if (!isPlain) throw new Error('the quota is used up')
    await write(new TextEncoder().encode(finalEvent(refusal)))
    await target.close()
  }

  // The client has disconnected, perhaps while the origin is silent.
  target.closed.catch(hangUp)
  try {
    while (isOpen) {
      const { done, value } = await source.read()
      if (done) {
        isWhole = isOpen
        break
      }
      if (!(await (cutting.length > 0 ? passEvents(value) : writeAndRead(value)))) {
        await cut()
        break
      }
    }
    if (isWhole) await target.close()
  } catch (error) {
    // The origin has broken off, or the client has disconnected.
    isWhole = false
    hangUp()
    target.abort(error).catch(() => {})
  }
  await reader?.end()
  return { isWhole, passed }
}

function mayGoOn(cutting: Allowance[]): boolean | Promise<boolean> {
  const answers = cutting.map((one) => one.mayGoOn())
  if (answers.includes(false)) return false
  const waiting = answers.filter((one) => one !== true)
  return waiting.length === 0 || Promise.all(waiting).then((all) => all.every(Boolean))
}

/** The last event of a stream that ends early. The client libraries of OpenAI and Anthropic throw it as an error. */
function finalEvent({ policy, max, retryAfterMs }: StreamEnd): string {
  const message =
    max === undefined
      ? `The quota "${policy}" is used up.`
      : `The response has reached its maximum of ${max} units of "${policy}".`
  const error = {
    ...{ type: 'rate_limit_error', code: 'rate_limit_exceeded', message, policy },
    ...(max === undefined && { retryAfterMs }),
  }
  return `event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`
}
