/**
 * Prints what one allowed request of the middleware enters, as JSON: the files of `src`, their functions and the calls. A process of its
 * own, because V8 counts the calls of a whole isolate. An `await` counts as one more call, when the function goes on.
 */
import { Session } from 'node:inspector/promises'
import { Hono } from 'hono'
import { rateLimiter } from '../../src/index.ts'

globalThis.fetch = async () => {
  const now = Date.now()
  const start = now - (now % 60_000)
  return Response.json({ result: `${now} +${start}:${start + 120_000 - now + (now - start)}:5:1;` })
}
const app = new Hono()
app.use(
  rateLimiter({
    clientAddress: 'socket',
    denialCache: false,
    policies: [{ name: 'per-ip', limit: 100, window: '1m' }],
  }),
)
app.get('/', (c) => c.text('passed'))
const env = {
  UPSTASH_REDIS_REST_URL: 'http://redis.example',
  UPSTASH_REDIS_REST_TOKEN: 'a-token',
  SLUICE_SECRET: 'a-secret',
  incoming: { socket: { remoteAddress: '203.0.113.7' } },
}
const context = { waitUntil() {}, passThroughOnException() {}, props: {} }
const answer = async () => (await app.request('/', undefined, env, context)).text()

for (let count = 0; count < 20; count += 1) await answer()
const session = new Session()
session.connect()
await session.post('Profiler.enable')
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
await session.post('Profiler.takePreciseCoverage')
const body = await answer()
const { result } = await session.post('Profiler.takePreciseCoverage')
const called = result
  .filter(({ url }) => /^file:.*\/src\/(?!.*node_modules)/.test(url))
  .flatMap(({ url, functions }) =>
    functions.map(({ functionName, ranges: [range] }) => ({ url, functionName, ...range! })),
  )
  .filter(({ count, startOffset }) => count > 0 && startOffset > 0)
console.log(
  JSON.stringify({
    body,
    files: new Set(called.map(({ url }) => url)).size,
    functions: called.length,
    calls: called.reduce((sum, { count }) => sum + count, 0),
    names: called.map(({ url, functionName }) => `${url.replace(/.*\/src\//, '')} ${functionName}`),
  }),
)
