/** `sluice/node` with the Redis of `REDIS_URL`. */
import { rateLimiter as middleware, fastifyRateLimiter as plugin } from '../hosts/node/node.ts'
import { withRedisUrl } from '../stores/redis-url.ts'

export const rateLimiter: typeof middleware = (options) => middleware(withRedisUrl(options))
export const fastifyRateLimiter: typeof plugin = (options) => plugin(withRedisUrl(options))
