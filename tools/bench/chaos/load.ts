import { Agent, request } from 'node:http'
import { type Call, callAt, type Mode } from './policies.ts'

/** The result of one request. Times are of `performance.now()`. */
export interface Sample {
  mode: Mode
  /** Path and key of a hot key. */
  hotKey: string | undefined
  sent: number
  done: number
  /** The HTTP status; 0 without a response. */
  status: number
  /** True if Redis decided the request. */
  decided: boolean
  /** The fallback that decided it, if Redis did not. */
  fallback: string | undefined
}

const TICK_MS = 5
/**
 * The requests in flight are at most those of this time, which is longer than a decision may take. Further ones are not sent: a machine that is
 * too slow for the rate gets a lower one, and no backlog that no request outlives.
 */
const MAX_IN_FLIGHT_MS = 500
const GIVE_UP_MS = 10_000

/**
 * Starts an open-loop load: sends `rate` requests a second over keep-alive connections, regardless of the response times, as far as the
 * machine can answer them.
 * @returns the samples so far, in the order of sending, and a function that ends the load
 */
export function startLoad(url: string, rate: number) {
  const most = (rate * MAX_IN_FLIGHT_MS) / 1000
  const agent = new Agent({ keepAlive: true, maxSockets: most })
  const samples: Sample[] = []
  const inFlight = new Set<Promise<void>>()
  const start = performance.now()
  let sent = 0

  const timer = setInterval(() => {
    const now = performance.now()
    for (const due = Math.floor(((now - start) * rate) / 1000); sent < due; sent++) {
      if (inFlight.size >= most) continue
      const call = callAt(sent, now)
      const sample: Sample = {
        mode: call.mode,
        hotKey: call.hot ? `${call.path} ${call.key}` : undefined,
        sent: now,
        done: now,
        status: 0,
        decided: false,
        fallback: undefined,
      }
      samples.push(sample)
      const answered = send(url, call, agent, sample).finally(() => inFlight.delete(answered))
      inFlight.add(answered)
    }
  }, TICK_MS)

  return {
    samples,
    /** Stops sending, and waits for the requests in flight. */
    async stop() {
      clearInterval(timer)
      await Promise.all(inFlight)
      agent.destroy()
    },
  }
}

function send(url: string, { path, key }: Call, agent: Agent, sample: Sample): Promise<void> {
  sample.sent = performance.now()
  return new Promise((resolve) => {
    const done = () => {
      sample.done = performance.now()
      resolve()
    }
    const outgoing = request(url + path, { agent, headers: { 'x-key': key }, timeout: GIVE_UP_MS })
    outgoing.on('timeout', () => outgoing.destroy())
    outgoing.on('error', done)
    outgoing.on('response', (response) => {
      response.on('error', done)
      response.on('end', () => {
        sample.status = response.statusCode!
        sample.decided = 'ratelimit' in response.headers
        // A fallback has no numbers.
        if (!sample.decided && [200, 429, 503].includes(sample.status))
          sample.fallback = sample.mode
        done()
      })
      response.resume()
    })
    outgoing.end()
  })
}
