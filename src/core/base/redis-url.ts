/**
 * Adds the store of `REDIS_URL` to options without a store: only on Node, Bun and Deno, where the package loads `stores/redis-url.ts` in place
 * of this file (`imports` of package.json).
 */
export const withRedisUrl = <Options>(options: Options, _env?: object): Options => options
