/** What Workers have beyond the web's own streams: native, and the one that tells its length. Elsewhere there is neither. */
type Pipe = { readable: ReadableStream<Uint8Array>; writable: WritableStream<Uint8Array> }
const { FixedLengthStream, IdentityTransformStream = TransformStream } = globalThis as {
  FixedLengthStream?: new (length: number) => Pipe
  IdentityTransformStream?: new () => Pipe
}

/** Answers whose bodies are the bytes that came, not what a `Content-Encoding` of theirs stands for: their length is right. */
const verbatim = new WeakSet<Response>()

/** Marks an answer as one whose body nobody decodes or encodes on its way. */
export function asVerbatim(answer: Response): Response {
  verbatim.add(answer)
  return answer
}

/**
 * Tells when the body of an answer has gone out whole, or no further: its reader went away, or its source broke off.
 * @returns an answer that is the same but for passing through here; at once where there is no body to wait for
 */
export function whenEnded(answer: Response, ended: () => void): Response {
  const upgraded = (answer as { webSocket?: unknown }).webSocket
  if (!answer.body || upgraded) {
    ended()
    return answer
  }
  const { readable, writable } = pipeFor(answer)
  answer.body.pipeTo(writable).then(ended, ended)
  return new Response(readable, answer)
}

function pipeFor(answer: Response): Pipe {
  const length = answer.headers.get('content-length')
  const known = verbatim.has(answer) || !answer.headers.has('content-encoding')
  return FixedLengthStream && known && length && /^\d{1,15}$/.test(length)
    ? new FixedLengthStream(Number(length))
    : new IdentityTransformStream()
}
