import { type Bridge, type RunningRedis, startBridge } from 'sluice-upstash-bridge'
import { afterAll, beforeAll } from 'vitest'
import { borrowRedis } from './borrow-redis.ts'

/** Redis with the bridge in front of it. They run from before the first test of a file until after the last. */
export interface Database {
  redis: RunningRedis
  bridge: Bridge
  /** The variables that name the database. */
  env: Record<string, string>
}

/** Starts a database for the tests of a file. Its parts are known in the tests. */
export function useDatabase(): Database {
  const database = { env: {} } as Database
  beforeAll(async () => {
    database.redis = await borrowRedis()
    database.bridge = await startBridge({ redis: database.redis.url, token: 'token' })
    const { url, token } = database.bridge
    Object.assign(database.env, { UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token })
  })
  afterAll(async () => {
    await database.bridge?.close()
    await database.redis?.stop()
  })
  return database
}
