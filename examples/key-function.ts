/** A Hono app that allows each user 60 requests a minute. Users who are not signed in are counted by IP address. */
import { Hono } from 'hono'
import { getSignedCookie } from 'hono/cookie'
import { type Bindings, rateLimiter } from '../src/index.ts' // 'sluice' in your own project

type App = {
  Bindings: Bindings & { SESSION_SECRET: string }
  Variables: { user: string | undefined }
}

const app = new Hono<App>()

app.use(async (c, next) => {
  c.set('user', (await getSignedCookie(c, c.env.SESSION_SECRET, 'user')) || undefined)
  await next()
})
app.use(
  rateLimiter<App>({
    policies: [
      {
        name: 'per-user',
        limit: 60,
        window: '1m',
        key: (c) => c.get('user'),
        onMissingKey: { key: 'ip' },
      },
    ],
  }),
)
app.get('/', (c) => c.text(`Hello ${c.get('user') ?? 'stranger'}.`))

export default app
