/** A Hono app that allows each IP address 100 requests and five login attempts a minute. */
import { Hono } from 'hono'
import { type Bindings, rateLimiter } from '../src/index.ts' // 'sluice' in your own project

const app = new Hono<{ Bindings: Bindings }>()
  .use(
    rateLimiter({
      policies: [
        { name: 'per-ip', limit: 100, window: '1m' },
        { name: 'login', limit: 5, window: '1m', match: { path: '/login', method: 'POST' } },
      ],
    }),
  )
  .post('/login', (c) => c.text('Welcome.'))
  .get('/', (c) => c.json({ remaining: c.var.rateLimit.limits[0]?.remaining }))

export default app
