/** `@upstash/ratelimit` as its documentation recommends for Workers, one limiter for each quota. */
import { Ratelimit } from '@upstash/ratelimit'
import { Redis } from '@upstash/redis/cloudflare'
import type { UpstashSettings, WorkerEnv } from '../variants.ts'

function create(env: WorkerEnv): Ratelimit[] {
  const { algorithm, cache, quotas }: UpstashSettings = JSON.parse(env.settings)
  const redis = Redis.fromEnv(env)
  return quotas.map(({ limit, windowMs }, index) => {
    const window = `${windowMs} ms` as const
    const limiter = {
      'fixed window': () => Ratelimit.fixedWindow(limit, window),
      'sliding window': () => Ratelimit.slidingWindow(limit, window),
      // One token at a time, at the same rate.
      'token bucket': () => Ratelimit.tokenBucket(1, `${Math.ceil(windowMs / limit)} ms`, limit),
    }[algorithm]()
    return new Ratelimit({
      redis,
      limiter,
      // Limiters with the same prefix would share their counters.
      ...(index > 0 && { prefix: `@upstash/ratelimit:${index}` }),
      ...(!cache && { ephemeralCache: false }),
    })
  })
}

let limiters: Ratelimit[] | undefined

export default {
  async fetch(
    request: Request,
    env: WorkerEnv,
    context: { waitUntil(promise: Promise<unknown>): void },
  ) {
    limiters ??= create(env)
    const client = request.headers.get('cf-connecting-ip') ?? ''
    const answers = await Promise.all(limiters.map((limiter) => limiter.limit(client)))
    for (const { pending } of answers) context.waitUntil(pending)
    if (answers.every(({ success }) => success)) return new Response('ok')
    const reset = Math.max(...answers.map((answer) => (answer.success ? 0 : answer.reset)))
    return Response.json({ retryAfterMs: Math.max(0, reset - Date.now()) }, { status: 429 })
  },
}
