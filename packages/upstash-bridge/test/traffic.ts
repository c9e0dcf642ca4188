import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { vi } from 'vitest'
import type { Bridge } from '../src/index.ts'

export type Answer = {
  key: string
  /** In ms of `performance.now()`. */
  sent: number
  received: number
  status: number
  result: number | undefined
  error: string | undefined
}

/** Maximum requests in flight. On a machine that is too slow for the rate, further requests are left out. */
const MAX_IN_FLIGHT = 300

/** Sends a command for each of the keys in turn at a fixed rate, whether or not the earlier ones have answers. */
export class Traffic {
  readonly answers: Answer[] = []
  readonly #agent = new Agent({ keepAlive: true, maxSockets: MAX_IN_FLIGHT })
  readonly #timer: NodeJS.Timeout
  readonly #inFlight = new Set<Promise<void>>()

  constructor(
    bridge: Bridge,
    perSecond: number,
    keys: string[],
    command: (key: string) => unknown[],
  ) {
    const start = performance.now()
    let next = 0
    this.#timer = setInterval(() => {
      const due = Math.floor(((performance.now() - start) / 1000) * perSecond)
      for (; next < due; next++) {
        if (this.#inFlight.size >= MAX_IN_FLIGHT) continue
        const key = keys[next % keys.length]!
        const sending: Promise<void> = this.#send(bridge, key, command(key)).finally(() =>
          this.#inFlight.delete(sending),
        )
        this.#inFlight.add(sending)
      }
    }, 5)
  }

  /** Stops sending, and resolves when each request has its answer. */
  async stop(): Promise<Answer[]> {
    clearInterval(this.#timer)
    await Promise.all(this.#inFlight)
    this.#agent.destroy()
    return this.answers
  }

  async #send(bridge: Bridge, key: string, command: unknown[]): Promise<void> {
    const sent = performance.now()
    let answer: { status: number; result?: number; error?: string }
    try {
      const headers = { authorization: 'Bearer dev' }
      const sending = request(bridge.url, { agent: this.#agent, method: 'POST', headers })
      sending.end(JSON.stringify(command))
      const [response] = await once(sending, 'response')
      const text = (await response.setEncoding('utf8').toArray()).join('')
      answer = { status: response.statusCode, ...JSON.parse(text) }
    } catch (error) {
      answer = { status: 0, error: `${error}` }
    }
    const { status, result, error } = answer
    this.answers.push({ key, sent, received: performance.now(), status, result, error })
  }
}

/** Waits until the check passes: a failover on a busy machine takes several seconds. */
export function until(check: () => unknown): Promise<unknown> {
  return vi.waitFor(check, { timeout: 40_000, interval: 30 })
}
