/** A request that goes out, perhaps several times. */
export interface SentCall {
  /** The request as policies see it. A call that waits does not keep it. */
  request: Request
  method: string
  signal: AbortSignal | undefined
  /** False if its body is a stream, which can be sent once. */
  isRepeatable: boolean
  send(): Promise<Response>
}

type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>

export function sendingOf(
  fetch: Fetch,
  input: string | URL | Request,
  init?: RequestInit,
): SentCall {
  // Without `instanceof Request`: `serve` of `@hono/node-server` replaces the class, and the request may be older.
  const given = typeof input === 'string' || input instanceof URL ? undefined : input
  const body = init?.body as unknown
  const isStream = body === undefined || body === null ? Boolean(given?.body) : isStreamed(body)
  const signal = init?.signal ?? given?.signal
  // A listener of the signal would keep the request in memory.
  const request = new Request(input, { ...init, signal: null })
  return {
    request,
    method: request.method,
    signal,
    isRepeatable: !isStream,
    send: isStream ? () => fetch(request, signal ? { signal } : {}) : () => fetch(input, init),
  }
}

const isStreamed = (body: unknown) =>
  body instanceof ReadableStream ||
  (typeof body === 'object' &&
    body !== null &&
    Symbol.asyncIterator in body &&
    !(body instanceof Blob))
