import { type Bridge, type RunningRedis, startBridge, startRedis } from 'sluice-upstash-bridge'
import { afterAll, beforeAll } from 'vitest'
import { type Outbound, type OutboundOptions, outbound } from '../../src/outbound/index.ts'

/** A request that the other side has received. */
export interface Received {
  url: string
  method: string
  body: string
  at: number
}

export interface OtherSide {
  received: Received[]
  /** Answers the next requests, in order. Defaults to 200 with the text `ok`. */
  answers: (Response | Error | (() => Promise<Response>))[]
  fetch: (input: string | URL | Request, init?: RequestInit) => Promise<Response>
}

/** The other side in this process: it keeps what it receives. */
export function otherSide(): OtherSide {
  const side: OtherSide = {
    received: [],
    answers: [],
    async fetch(input, init) {
      const request = new Request(input, init)
      request.signal.throwIfAborted()
      const { url, method } = request
      side.received.push({ url, method, body: await request.text(), at: Date.now() })
      const answer = side.answers.shift() ?? new Response('ok')
      if (answer instanceof Error) throw answer
      return typeof answer === 'function' ? answer() : answer
    },
  }
  return side
}

/** Calls with turns on a real Redis. Each test has limits of its own: they have its namespace. */
export function useOutbound() {
  let redis: RunningRedis
  let bridge: Bridge
  let tests = 0
  beforeAll(async () => {
    redis = await startRedis({ own: true })
    bridge = await startBridge({ redis: redis.url })
  })
  afterAll(async () => {
    await bridge.close()
    await redis.stop()
  })
  return {
    /** Ends Redis. */
    kill: () => redis.stop(),
    /** The variables of the database. */
    env: () => ({
      UPSTASH_REDIS_REST_URL: bridge.url,
      UPSTASH_REDIS_REST_TOKEN: bridge.token,
      SLUICE_SECRET: 'a secret for tests',
    }),
    /** Makes several processes with the same limits. */
    processes(count: number, side: OtherSide, options: OutboundOptions): Outbound[] {
      tests += 1
      const namespace = `test-${tests}`
      return Array.from({ length: count }, () =>
        outbound(side.fetch, { deadline: '5s', env: this.env(), namespace, ...options }),
      )
    },
  }
}
