/** The user's Worker or app while it runs. */
export interface Running {
  /** The lines that the Worker has logged. */
  logs: string[]
  /** @param url an absolute URL, or a path. @param client what Cloudflare, or the socket, reports about the client */
  fetch(
    url: string,
    init: RequestInit,
    client: { ip: string; cf?: Record<string, unknown> | undefined },
  ): Promise<Response>
  /** Moves the clock of the isolate. */
  setOffset(ms: number): Promise<void>
  /** Empties everything that the isolate remembers of counters. */
  flush(): Promise<void>
  stop(): Promise<void>
}
