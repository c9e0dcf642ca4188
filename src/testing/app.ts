/** Runs the user's app in this process, by the clock of the stack. */
import { inTime } from '../core/base/sleep.ts'
import { runBy, type TestClock } from './clock.ts'
import type { Running } from './running.ts'

/** An app with the interface of a Worker, such as a Hono app. */
export interface TestApp {
  // biome-ignore lint/suspicious/noExplicitAny: each app declares its own bindings and context
  fetch(request: Request, env: any, ctx: any): Response | Promise<Response>
}

/** How long `stop` waits for work in the background, ms. */
const MAX_WAIT_MS = 2_000

export function startApp(app: TestApp, env: Record<string, unknown>, clock: TestClock): Running {
  const background = new Set<Promise<unknown>>()
  const waitUntil = (promise: Promise<unknown>) => {
    const settled = promise.catch(() => {}).finally(() => background.delete(settled))
    background.add(settled)
  }
  let flushes = 0

  return {
    logs: [],
    async fetch(url, init, { ip, cf }) {
      const request = new Request(new URL(url, 'http://localhost'), init)
      Object.defineProperty(request, 'cf', { value: cf ?? {} })
      // The limiter creates its caches for a secret, so a new secret empties them.
      const secret = flushes > 0 && { SLUICE_SECRET: `${env.SLUICE_SECRET ?? ''} ${flushes}` }
      // In the form of @hono/node-server, which passes the socket of the client.
      const incoming = { socket: { remoteAddress: ip } }
      const ctx = { waitUntil, passThroughOnException() {}, props: {} }
      const answer = async () => app.fetch(request, { ...env, ...secret, incoming }, ctx)
      return readBy(clock, await runBy(clock, answer))
    },
    async setOffset() {}, // the app reads the clock itself
    async flush() {
      flushes += 1
    },
    async stop() {
      await inTime(Promise.all(background), MAX_WAIT_MS, () => new Error()).catch(() => {})
    },
  }
}

/** A response whose body is produced by the clock, although the test reads it. */
function readBy(clock: TestClock, response: Response): Response {
  if (!response.body) return response
  const reader = runBy(clock, () => response.body!.getReader())
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await runBy(clock, () => reader.read())
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel: (reason) => runBy(clock, () => reader.cancel(reason)),
    },
    { highWaterMark: 0 },
  )
  return new Response(body, response)
}
