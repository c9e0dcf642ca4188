/** The body of a request, if it is not in its `Request`: a stream, or what the app has parsed. */
export type BodySource = () =>
  | { stream: ReadableStream<Uint8Array> }
  | { parsed: unknown }
  | { unreadable: string }

/** The bodies of requests to Node's servers, whose `Request` has none. */
export const bodySources = new WeakMap<Request, BodySource>()
