/** `sluice/limits` on Node, Bun and Deno. */
import { limits as make } from '../limits/limits.ts'
import { withRedisUrl } from '../stores/redis-url.ts'

export const limits: typeof make = (terms, options = {}) => make(terms, withRedisUrl(options))
