export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>

/**
 * A request that goes out, perhaps several times.
 * @returns the request as policies see it, which a call that waits does not keep. A body that is a stream can be sent once
 */
export function sendingOf(fetch: Fetch, input: string | URL | Request, init?: RequestInit) {
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
