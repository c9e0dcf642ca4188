/** A process with 16 callers of one origin, through one of the contenders. tools/bench/outbound.ts starts four. */
import Bottleneck from 'bottleneck'
import pLimit from 'p-limit'
import { outbound } from '../../../src/outbound/index.ts'

const { ORIGIN = '', CONTENDER, UNTIL } = process.env
const CALLERS = 16

type Send = () => Promise<Response>
const send: Send = () => fetch(ORIGIN, { method: 'POST', body: '{}' })

/** Sends again after a 429, as the contenders without a knowledge of responses need it: after `Retry-After` and up to as long at random. */
async function withRetries(once: Send): Promise<Response> {
  for (;;) {
    const response = await once()
    if (response.status !== 429) return response
    await response.arrayBuffer()
    const ms = Number(response.headers.get('retry-after') ?? 1) * 1000
    await new Promise((resolve) => setTimeout(resolve, ms * (1 + Math.random())))
  }
}

const contenders: Record<string, () => Send> = {
  outbound() {
    const call = outbound(fetch, {
      policies: [
        { name: 'requests', algorithm: 'token-bucket', limit: 50, window: '1s', burst: 5 },
      ],
      deadline: '5s',
    })
    return () => call(ORIGIN, { method: 'POST', body: '{}' })
  },
  /** Each process has the whole limit. */
  bottleneck() {
    const limiter = new Bottleneck({ minTime: 20, maxConcurrent: CALLERS })
    return () => withRetries(() => limiter.schedule(send))
  },
  /** Each process has a quarter of the limit. */
  'bottleneck-quarter'() {
    const limiter = new Bottleneck({ minTime: 80, maxConcurrent: CALLERS })
    return () => withRetries(() => limiter.schedule(send))
  },
  'p-limit'() {
    const limit = pLimit(4)
    return () => withRetries(() => limit(send))
  },
}

const call = contenders[CONTENDER!]!()
async function caller() {
  while (Date.now() < Number(UNTIL)) await (await call()).arrayBuffer()
}
await Promise.all(Array.from({ length: CALLERS }, caller))
