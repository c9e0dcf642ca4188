/** `sluice/better-auth` on Node, Bun and Deno. */
import { sluiceStorage as make } from '../adapters/better-auth.ts'
import { withRedisUrl } from '../stores/redis-url.ts'

export const sluiceStorage: typeof make = (options = {}) => make(withRedisUrl(options))
