import { startRedis } from 'sluice-upstash-bridge'
import { buildStack } from '../../dev/stack.ts'

/** Runs once before all test files: downloads Redis if it is not installed, and builds the Workers. */
export default async function setup() {
  const redis = await startRedis({ log: console.log })
  await Promise.all([redis.stop(), buildStack()])
}
