import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { type Aim, takeAim } from './aim.ts'
import { Exchange } from './exchange.ts'
import { FaultError, type FaultText, parseFault } from './fault.ts'
import { Port } from './port.ts'
import { count, Target } from './target.ts'

export interface FaultsOptions {
  /** The REST URL of an Upstash database or of the Upstash bridge. */
  target: string
  /** Port on 127.0.0.1. Defaults to 0, which selects a free port. */
  port?: number
}

/** Number of requests by command name in lower case; `other` counts requests that are not a single command. */
export interface Counts {
  /** Requests received from clients. Refused connections do not count. */
  arrived: Record<string, number>
  /** Requests forwarded to the target. */
  delivered: Record<string, number>
  /** Number of requests that a fault was applied to. */
  hit: number
}

export interface Faults {
  /** The URL that clients use instead of the target's. */
  url: string
  /** Starts a fault, which replaces the previous one; `null` ends it. README.md lists all faults. @throws FaultError */
  set(fault: FaultText | null, aim?: Aim): Promise<void>
  counts(): Counts
  /** Breaks all connections and releases the port. */
  close(): Promise<void>
}

/**
 * Starts an HTTP proxy that injects faults between a client and the Upstash REST API. The proxy sees the token and
 * listens on loopback only; use it for development and tests.
 *
 * @example
 * const faults = await startFaults({ target: bridge.url })
 * await faults.set('delay=1000')              // every request
 * await faults.set('reset-body', { next: 3 }) // the next three requests
 * await faults.set(null)
 *
 * @throws Error when the port is in use or the target is not a URL
 */
export async function startFaults({ target: url, port = 0 }: FaultsOptions): Promise<Faults> {
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    throw new FaultError('target: expected an http or https URL, such as http://127.0.0.1:8079')
  }
  const target = new Target(url)
  const arrived: Record<string, number> = {}
  const closing = new AbortController()
  let hit = 0
  let current: { fault: ReturnType<typeof parseFault>; aimed: () => boolean } | undefined

  async function handle(request: IncomingMessage, response: ServerResponse) {
    const body = await buffer(request)
    count(arrived, body)
    const exchange = new Exchange(request, body, response, target)
    if (!current?.aimed()) return exchange.pass()
    hit += 1
    const { run, argument } = current.fault
    await run(exchange, argument, closing.signal)
  }

  const server = createServer((request, response) => {
    handle(request, response).catch(() => {
      // The target or the client has disconnected.
      if (response.headersSent || response.destroyed) return response.destroy()
      const body = JSON.stringify({ error: 'ERR the target of the fault proxy does not respond' })
      response.writeHead(502, { 'content-type': 'application/json' }).end(body)
    })
  })
  // Longer than clients keep an idle connection, so that no client writes to a connection that the proxy has closed.
  server.keepAliveTimeout = 120_000
  const listener = new Port(server, port)
  await listener.open()

  return {
    url: listener.url,
    async set(text, aim = {}) {
      const fault = text === null ? undefined : parseFault(text)
      checkAim(aim, fault?.name)
      current = fault && { fault, aimed: takeAim(aim) }
      await (fault?.name === 'refuse' ? listener.shut() : listener.open())
    },
    counts: () => ({ arrived: { ...arrived }, delivered: { ...target.delivered }, hit }),
    async close() {
      closing.abort()
      await listener.shut()
      target.close()
    },
  }
}

function checkAim(aim: Aim, name: string | undefined): void {
  const { share = 1, next = 1 } = aim
  if (!(share > 0 && share <= 1))
    throw new FaultError('share: expected a number above 0 and at most 1')
  if (!Number.isSafeInteger(next) || next < 1)
    throw new FaultError('next: expected a whole number, 1 or more')
  if (name === 'refuse' && (share < 1 || aim.next)) {
    throw new FaultError('refuse: affects all requests, so share and next do not apply; use reset')
  }
}
