/** A process with concurrent callers of one origin: test/unit/features/outbound/origin.long.test.ts starts several. */
import { bodies } from '../../src/features/bodies/index.ts'
import { outbound } from '../../src/features/outbound/index.ts'

const { ORIGIN, CALLERS, UNTIL } = process.env
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
async function caller() {
  while (Date.now() < Number(UNTIL)) {
    const response = await call(ORIGIN!, { method: 'POST', body: '{}' })
    await response.arrayBuffer()
    statuses[response.status] = (statuses[response.status] ?? 0) + 1
  }
}
await Promise.all(Array.from({ length: Number(CALLERS) }, caller))
console.log(JSON.stringify(statuses))
