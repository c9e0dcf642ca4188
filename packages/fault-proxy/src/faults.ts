import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { type Aim, takeAim } from './aim.ts'
import { Exchange } from './exchange.ts'
import { FaultError, type FaultText, parseFault } from './fault.ts'
import { Port } from './port.ts'
import { count, Target } from './target.ts'

export interface FaultsOptions {
  /** The REST URL of an Upstash, or of the bridge. */
  target: string
  /** Default 0: a free port of loopback. */
  port?: number
}

/** Requests so far, by the name of their command in lower case; `other` for anything but a single command. */
export interface Counts {
  /** Received from clients. Refused connections do not count. */
  arrived: Record<string, number>
  /** Forwarded to the target. */
  delivered: Record<string, number>
  /** Requests that a fault was applied to. */
  hit: number
}

export interface Faults {
  /** Use it in place of the target's. */
  url: string
  /** Injects this fault from now on (README.md lists them all); `null` ends it. @throws FaultError */
  set(fault: FaultText | null, aim?: Aim): Promise<void>
  counts(): Counts
  /** Breaks all connections and releases the port. */
  close(): Promise<void>
}

/**
 * A proxy in front of an Upstash or the bridge that injects faults on command. It listens on loopback and sees the
 * token: for development only.
 *
 * @example
 * const faults = await startFaults({ target: bridge.url })
 * await faults.set('delay=1000')              // every request
 * await faults.set('reset-body', { next: 3 }) // only the next three
 * await faults.set(null)
 *
 * @throws Error when the port is taken or the target is not a URL
 */
export async function startFaults({ target: url, port = 0 }: FaultsOptions): Promise<Faults> {
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    throw new FaultError('target: expected an http(s) URL, such as http://127.0.0.1:8079')
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
      // The target or the client is gone.
      if (response.headersSent || response.destroyed) return response.destroy()
      const body = JSON.stringify({ error: 'ERR the target of the fault proxy does not answer' })
      response.writeHead(502, { 'content-type': 'application/json' }).end(body)
    })
  })
  // Longer than clients keep an idle connection, so that they do not write into a closed one.
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
  if (!(share > 0 && share <= 1)) throw new FaultError('share: expected above 0 and at most 1')
  if (!Number.isSafeInteger(next) || next < 1) throw new FaultError('next: expected 1 or more')
  if (name === 'refuse' && (share < 1 || aim.next)) {
    throw new FaultError('refuse: a port is shut for all requests; reset takes share and next')
  }
}
