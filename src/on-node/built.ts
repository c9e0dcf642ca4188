/** `sluice/built` on Node, Bun and Deno. */
import { createSluice as create, rateLimiter as middleware } from '../built/built.ts'
import { builtWithRedisUrl } from '../stores/redis-url.ts'

export * from '../built/built.ts'
export const createSluice: typeof create = (built) => create(builtWithRedisUrl(built))
export const rateLimiter: typeof middleware = (built) => middleware(builtWithRedisUrl(built))
