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

/** Requests so far, by their command's name in lower case (`other`: no single command). */
export interface Counts {
  /** What clients sent. Where connections are refused nothing arrives. */
  arrived: Record<string, number>
  /** What was sent on to the target. */
  delivered: Record<string, number>
  /** How many met a fault. */
  hit: number
}

export interface Faults {
  /** To be used in place of the target's. */
  url: string
  /** From now on this happens to requests (README.md lists them); `null`: nothing does. @throws FaultError */
  set(fault: FaultText | null, aim?: Aim): Promise<void>
  counts(): Counts
  /** Breaks all connections and lets go of the port. */
  close(): Promise<void>
}

/**
 * A proxy in front of an Upstash or the bridge that misbehaves on command. Loopback only, and it sees the token: for
 * development.
 *
 * @example
 * const faults = await startFaults({ target: bridge.url })
 * await faults.set('delay=1000')              // every request
 * await faults.set('reset-body', { next: 3 }) // only the next three
 * await faults.set(null)
 *
 * @throws Error when the port is taken or the target is no URL
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
      // The target is away, or the client.
      if (response.headersSent || response.destroyed) return response.destroy()
      const body = JSON.stringify({ error: 'ERR the target of the fault proxy does not answer' })
      response.writeHead(502, { 'content-type': 'application/json' }).end(body)
    })
  })
  // Longer than clients keep an idle connection, or they would now and then write into a closed one.
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
