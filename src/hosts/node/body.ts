/** Reads the body of a request to a Node server before the app does. */
import type { BodySource } from '../../core/request/body-sources.ts'
import type { NodeRequest } from './incoming.ts'

/** The parts of Node's `IncomingMessage` that have the body. */
export interface NodeBody {
  readonly complete: boolean
  readonly readableDidRead: boolean
  readonly readableEnded: boolean
  readonly readableLength: number
  /** The value that a body parser of the app has read. */
  body?: unknown
  /**
   * The stream of HTTP/2. Its `endAfterHeaders` is true if the request has no body. Its `readableEnded` is true when the whole body has
   * arrived; `complete` only after the event `end`.
   */
  stream?: { endAfterHeaders: boolean; readonly readableEnded: boolean }
  read(): Uint8Array | string | null
  unshift(chunk: Uint8Array): void
  resume(): unknown
  on(event: 'readable' | 'close', listener: () => void): unknown
  off(event: 'readable' | 'close', listener: () => void): unknown
}

const bodyIn = (incoming: NodeRequest) => incoming as NodeRequest & NodeBody

/** Reports whether a request may have a body. A request of HTTP/2 needs no field for it. */
export function mayHaveBody(incoming: NodeRequest): boolean {
  const { 'content-length': length, 'transfer-encoding': encoding } = incoming.headers
  const { stream } = bodyIn(incoming)
  return length === undefined
    ? encoding !== undefined || stream?.endAfterHeaders === false
    : length !== '0'
}

/** Requests that a limiter has read. Unless the app has read them since, they have all of their bytes. */
const peeked = new WeakSet<NodeBody>()

/** Returns the body as the app will read it. */
export const bodySource =
  (incoming: NodeRequest): BodySource =>
  () => {
    const { readableDidRead, readableEnded, body } = bodyIn(incoming)
    const isUnread = peeked.has(bodyIn(incoming)) && !readableEnded && body === undefined
    if (!readableDidRead || isUnread) return { stream: peek(bodyIn(incoming)) }
    return body === undefined || typeof body === 'string' || ArrayBuffer.isView(body)
      ? { unreadable: 'the app has read it, and not as JSON' }
      : { parsed: body }
  }

/** Discards the rest of the body of a refused request. Node does this only for a body that no code has begun to read. */
export const discard = (incoming: NodeRequest) => void bodyIn(incoming).resume()

/**
 * Reads the body, from the first read of the stream on. When the stream ends or is cancelled, the request has all of its bytes again.
 * Reads only while there are bytes: Node emits `end` after a read that finds none, and an app that listens later would wait for ever.
 */
function peek(incoming: NodeBody): ReadableStream<Uint8Array> {
  const chunks: Uint8Array[] = []
  let isListening = false
  let stop = () => {}
  const hasArrived = () => incoming.complete || incoming.stream?.readableEnded === true
  const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    if (isListening) return
    if (hasArrived() && incoming.readableLength === 0) return controller.close()
    isListening = true
    peeked.add(incoming)
    stop = () => {
      incoming.off('readable', onReadable)
      incoming.off('close', onClose)
      // Before the event `end`, which Node emits in a later turn: after it no byte can be put back.
      for (const chunk of chunks.splice(0).reverse()) incoming.unshift(chunk)
    }
    function onReadable() {
      while (incoming.readableLength > 0) {
        const chunk = incoming.read()!
        const bytes = typeof chunk === 'string' ? new TextEncoder().encode(chunk) : chunk
        chunks.push(bytes)
        controller.enqueue(bytes)
      }
      if (!hasArrived()) return
      stop()
      controller.close()
    }
    function onClose() {
      stop()
      controller.error(new TypeError('the client has disconnected'))
    }
    incoming.on('readable', onReadable)
    incoming.on('close', onClose)
  }
  return new ReadableStream({ pull, cancel: () => stop() }, { highWaterMark: 0 })
}
