import { startRedis } from '../dev/redis.ts'

/** Fetches a Redis, where there is none, once for all test files. */
export default async function setup() {
  const redis = await startRedis({ log: console.log })
  await redis.stop()
}
