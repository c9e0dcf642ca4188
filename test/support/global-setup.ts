import { startRedis } from 'sluice-upstash-bridge'
import { buildStack } from '../../dev/stack.ts'

/** Once for all test files: fetches a Redis where there is none, and builds the Workers. */
export default async function setup() {
  const redis = await startRedis({ log: console.log })
  await Promise.all([redis.stop(), buildStack()])
}
