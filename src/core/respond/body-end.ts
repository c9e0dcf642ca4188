/** Streams of the Workers runtime: native, and with a known length. Other runtimes have neither. */
type Pipe = { readable: ReadableStream<Uint8Array>; writable: WritableStream<Uint8Array> }
export const { FixedLengthStream, IdentityTransformStream = TransformStream } = globalThis as {
  FixedLengthStream?: new (length: number) => Pipe
  IdentityTransformStream?: new () => Pipe
}

/** Responses whose bodies are the received bytes, not decoded by `Content-Encoding`. Their `Content-Length` is correct. */
const verbatim = new WeakSet<Response>()

export function asVerbatim(answer: Response): Response {
  verbatim.add(answer)
  return answer
}

/** Calls `ended` once the body of a response is sent, or sending fails; at once without a body. @returns the response to send */
export function whenEnded(answer: Response, ended: () => void): Response {
  const upgraded = (answer as { webSocket?: unknown }).webSocket
  if (!answer.body || upgraded) {
    ended()
    return answer
  }
  const { readable, writable } = pipeFor(answer)
  const done = () => ended()
  answer.body.pipeTo(writable).then(done, done)
  return new Response(readable, answer)
}

/** A stream for the body of a response. It keeps the `Content-Length`. */
export function pipeFor(answer: Response): Pipe {
  const length = answer.headers.get('content-length')
  const known = verbatim.has(answer) || !answer.headers.has('content-encoding')
  return FixedLengthStream && known && length && /^\d{1,15}$/.test(length)
    ? new FixedLengthStream(Number(length))
    : new IdentityTransformStream()
}
