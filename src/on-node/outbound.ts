/** `sluice/outbound` on Node, Bun and Deno. */
import { outbound as make } from '../outbound/index.ts'
import { withRedisUrl } from '../stores/redis-url.ts'

export * from '../outbound/index.ts'
export const outbound: typeof make = (fetch, options) => make(fetch, withRedisUrl(options))
