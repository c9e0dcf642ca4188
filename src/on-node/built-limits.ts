/** `sluice/built/limits` on Node, Bun and Deno. */
import { limits as make } from '../built/limits.ts'
import { builtWithRedisUrl } from '../stores/redis-url.ts'

export * from '../built/limits.ts'
export const limits: typeof make = (made, options = {}) =>
  make(builtWithRedisUrl(made, options.env), options)
