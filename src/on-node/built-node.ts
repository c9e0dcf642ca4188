/** `sluice/built/node` with the Redis of `REDIS_URL`. */
import { rateLimiter as middleware, fastifyRateLimiter as plugin } from '../built/node.ts'
import { builtWithRedisUrl } from '../stores/redis-url.ts'

export const rateLimiter: typeof middleware = (built) => middleware(builtWithRedisUrl(built))
export const fastifyRateLimiter: typeof plugin = (built) => plugin(builtWithRedisUrl(built))
