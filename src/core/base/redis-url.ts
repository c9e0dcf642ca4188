/**
 * Adds the store of `REDIS_URL` to options without a store. This file adds none: it is for Workers. On Node, Bun and Deno the package loads
 * `stores/redis-url.ts` in its place.
 */
export const withRedisUrl = <Options>(options: Options, _env?: object): Options => options
