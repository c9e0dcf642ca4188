/** A process with concurrent callers of one origin: test/unit/outbound/origin.long.test.ts starts several. */
import { setTimeout as sleep } from 'node:timers/promises'
import { bodies } from '../../src/features/bodies/index.ts'
import { outbound } from '../../src/outbound/index.ts'

const { ORIGIN, CALLERS, UNTIL, UPSTASH_REDIS_REST_URL, UPSTASH_REDIS_REST_TOKEN } = process.env
const call = outbound(fetch, {
  policies: [
    { name: 'requests', algorithm: 'token-bucket', limit: 50, window: '1s', burst: 5 },
    {
      name: 'tokens',
      algorithm: 'token-bucket',
      limit: 10_000,
      window: '10s',
      burst: 500,
      cost: { usage: 'usage.total_tokens', otherwise: 16, max: 100 },
    },
    { name: 'open', algorithm: 'concurrency', limit: 50, window: '1m' },
  ],
  use: [bodies()],
  wait: '30s',
  deadline: '5s',
})

const statuses: Record<string, number> = {}
const isOver = () => Date.now() >= Number(UNTIL)
async function caller() {
  while (!isOver()) {
    const response = await call(ORIGIN!, { method: 'POST', body: '{}' })
    await response.arrayBuffer()
    statuses[response.status] = (statuses[response.status] ?? 0) + 1
  }
}

/** A control request takes as long on a quiet machine, ms. */
const ORDINARY_MS = 10
/** When the machine, and not the limiter, delayed this process: control requests to the same database that took longer. */
const stalls: { from: number; ms: number }[] = []
async function watch() {
  const headers = { Authorization: `Bearer ${UPSTASH_REDIS_REST_TOKEN}` }
  while (!isOver()) {
    const from = Date.now()
    await sleep(20)
    const response = await fetch(UPSTASH_REDIS_REST_URL!, {
      method: 'POST',
      headers,
      body: '["PING"]',
    })
    await response.arrayBuffer()
    const ms = Date.now() - from - 20 - ORDINARY_MS
    if (ms > 0) stalls.push({ from, ms })
  }
}
await Promise.all([watch(), ...Array.from({ length: Number(CALLERS) }, caller)])
console.log(JSON.stringify({ statuses, stalls }))
