import { Hono } from 'hono/tiny'
import type { Quota, WorkerEnv } from '../variants.ts'

/** Waits for the GET of a request. */
export type Get = (env: WorkerEnv, client: string, context: Context) => Promise<unknown>
type Context = { waitUntil(promise: Promise<unknown>): void }

/**
 * Makes a Worker that responds as Sluice does, and decides nothing: it counts the requests of a client in memory, and calls `get` for each
 * that it admits. The floor of a limiter in a Hono app with these fields and this problem document.
 */
export function undecided(get: Get) {
  let app: Hono | undefined
  return {
    fetch(request: Request, env: WorkerEnv, context: never) {
      app ??= create(JSON.parse(env.settings), env, get)
      return app.fetch(request, env, context)
    },
  }
}

function create({ limit, windowMs }: Quota, env: WorkerEnv, get: Get) {
  const counts = new Map<string, number>()
  const policy = `"quota-0";q=${limit};w=${windowMs / 1000}`
  const app = new Hono()
  app.use(async (c, next) => {
    const client = c.req.raw.headers.get('cf-connecting-ip') ?? ''
    const count = (counts.get(client) ?? 0) + 1
    counts.set(client, count)
    const resetAfterMs = windowMs - (Date.now() % windowMs)
    const seconds = Math.ceil(resetAfterMs / 1000)
    if (count > limit) return refusal(policy, resetAfterMs, seconds)
    await get(env, client, c.executionCtx)
    await next()
    const { headers } = c.res
    headers.set('RateLimit-Policy', policy)
    headers.set('RateLimit', `"quota-0";r=${limit - count};t=${seconds}`)
  })
  app.get('/', (c) => c.text('ok'))
  return app
}

const refusal = (policy: string, retryAfterMs: number, seconds: number) =>
  new Response(
    JSON.stringify({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      status: 429,
      title: 'Quota exceeded',
      detail: `Try again in ${Math.ceil(retryAfterMs / 1000)} seconds.`,
      retryAfterMs,
      'violated-policies': ['quota-0'],
    }),
    {
      status: 429,
      headers: {
        'Content-Type': 'application/problem+json',
        'Cache-Control': 'no-store',
        'Retry-After': String(seconds),
        'RateLimit-Policy': policy,
        RateLimit: `"quota-0";r=0;t=${seconds}`,
      },
    },
  )
