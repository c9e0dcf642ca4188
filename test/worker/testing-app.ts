/** A Worker and app for the tests of sluice/testing: each first part of the path has a policy. */

import { Hono } from 'hono'
import { type Bindings, type PolicyOptions, rateLimiter } from '../../src/index.ts'
import { bans, concurrency, leases, slidingLog } from '../support/features.ts'

const policy = (name: string, options: Partial<PolicyOptions>): PolicyOptions => ({
  name,
  limit: 10,
  window: '1d',
  match: { path: `/${name}` },
  ...options,
})

/** The clock as a module captures it when it is evaluated. */
const capturedNow = Date.now

const app = new Hono<{ Bindings: Bindings & Record<string, unknown> }>()
app.use(
  rateLimiter({
    clientAddress: 'cloudflare', // also in this process
    use: [bans(), concurrency(), leases(), slidingLog()],
    deadline: '10s', // a slow machine must cause no store errors
    policies: [
      policy('daily', { algorithm: 'fixed-window' }),
      policy('sliding', { algorithm: 'sliding-window' }),
      policy('log', { algorithm: 'sliding-log' }),
      policy('bucket', { algorithm: 'token-bucket' }),
      policy('monthly', { algorithm: 'fixed-window', window: 'month' }),
      policy('leased', { algorithm: 'fixed-window', limit: 40, lease: { max: 10, ttl: '60s' } }),
      policy('banned', {
        algorithm: 'fixed-window',
        limit: 1,
        window: '1m',
        penalty: { after: 2, within: '5m', ban: '1h' },
      }),
      policy('slots', { algorithm: 'concurrency', limit: 2, window: '5m' }),
      policy('strict', { onStoreError: 'deny' }),
      policy('german', { limit: 1, match: { path: '/where', country: 'DE' } }),
      policy('host', { limit: 1, match: { host: 'www.example.com', path: '/where' } }),
    ],
  }),
)
/** A body that is held until the client leaves. workerd ends a response that waits for nothing, so it waits for a timer. */
function waiting() {
  let timer: ReturnType<typeof setInterval>
  return new ReadableStream({
    start() {
      timer = setInterval(() => {}, 1000)
    },
    cancel() {
      clearInterval(timer)
    },
  })
}
app.get('/slots', () => new Response(waiting()))
app.get('/clock', (c) => {
  const date = new Date()
  return c.json({
    now: Date.now(),
    captured: capturedNow(),
    date: date.valueOf(),
    text: Date.parse(Date()),
    fixed: new Date(2026, 0).getFullYear(),
    isDate: date instanceof Date,
  })
})
app.get('/env', (c) => c.json(c.env))
app.get('/origin', async (c) => {
  const response = await fetch(`${c.env.ORIGIN}/path?query`, { method: 'POST', body: 'hello' })
  return c.json({
    status: response.status,
    text: await response.text(),
    cookies: response.headers.getSetCookie(),
  })
})
app.get('/logging', (c) => {
  console.log('a line of the Worker')
  return c.text('logged')
})
app.all('*', (c) => c.text('ok'))

export default app
