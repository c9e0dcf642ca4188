/** Adds no store: for Workers. On Node, Bun and Deno the package loads `stores/redis-url.ts` in its place, which adds that of `REDIS_URL`. */
export const withRedisUrl = <Options>(options: Options, _env?: object): Options => options
