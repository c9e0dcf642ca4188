export type { Binary, ServerBinary } from './binary.ts'
export { outputOf } from './binary.ts'
export { type Bridge, type BridgeOptions, startBridge } from './bridge.ts'
export type { Bill } from './database.ts'
export { findServer, type ServerKind } from './find.ts'
export { freePort } from './free-port.ts'
export { type RedisOptions, type RunningRedis, startRedis } from './redis.ts'
export {
  type ClusterOptions,
  type RunningCluster,
  startCluster,
  startNode,
} from './redis-cluster.ts'
export { SLOTS, slotOf } from './slot.ts'
export type { RedisTarget } from './targets.ts'
export type { Token } from './tokens.ts'
export { afterDeath } from './watchdog.ts'
