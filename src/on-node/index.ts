/** `sluice` on Node, Bun and Deno: a limiter without a store connects to the Redis of `REDIS_URL`. */
import { rateLimiter as middleware } from '../hosts/app/middleware.ts'
import { createSluice as create } from '../hosts/app/sluice.ts'
import { withRedisUrl } from '../stores/redis-url.ts'

export * from '../index.ts'
export const createSluice: typeof create = (options) => create(withRedisUrl(options))
export const rateLimiter: typeof middleware = (options) => middleware(withRedisUrl(options))
