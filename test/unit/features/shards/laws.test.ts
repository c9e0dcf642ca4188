import { useShardedRedis } from '../../../support/sharded-redis.ts'
import { shardingLaws } from '../../../support/sharding-laws.ts'

const { newShards } = useShardedRedis()
shardingLaws(() => newShards())
