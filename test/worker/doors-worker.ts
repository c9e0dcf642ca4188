/** A Worker whose handlers ask limits by name and key, and do not wait for the answer. */
import './process-reads.ts' // before the modules whose reads count
import { Hono } from 'hono'
import { type Bindings, rateLimiter } from '../../src/index.ts'
import { limits } from '../../src/limits/limits.ts'
import { processReads } from './process-reads.ts'

const terms = { limit: 40, window: '1h', algorithm: 'sliding-log' } as const
const options = { deadline: '10s', namespace: 'doors' } as const
const quota = limits({ jobs: terms }, options)

const app = new Hono<{ Bindings: Bindings }>()
const middleware = rateLimiter({
  ...options,
  policies: [{ ...terms, name: 'jobs', key: 'header:x-user', match: { path: '/none' } }],
})
const later = (task: () => Promise<unknown>) =>
  new Promise((resolve) => setTimeout(resolve, 100)).then(task)

export default app
  .get('/process', (c) => c.json(processReads))
  .use(middleware as never)
  .get('/:door/:call/:key', async (c) => {
    const { door, call, key } = c.req.param()
    const waitUntil = (promise: Promise<unknown>) => c.executionCtx.waitUntil(promise)
    const runtime = { env: c.env, waitUntil }
    const sluice = c.get('sluice' as never) as typeof quota
    const limit = () =>
      door === 'request' ? sluice.limit('jobs', key) : quota.limit('jobs', key, runtime)
    if (call === 'forgotten') void limit()
    else if (call === 'later') waitUntil(later(limit))
    else if (call === 'many') {
      const all = await Promise.all(Array.from({ length: 64 }, limit))
      return c.json(all.filter(({ allowed }) => allowed).length)
    } else {
      const peeked =
        door === 'request' ? sluice.peek('jobs', key) : quota.peek('jobs', key, runtime)
      return c.json((await peeked).remaining)
    }
    return c.text('ok')
  })
