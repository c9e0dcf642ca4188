import { useObjects } from '../../../support/objects.ts'
import { shardingLaws } from '../../../support/sharding-laws.ts'

const { store } = useObjects()
// The Worker finishes its background work before it replies.
shardingLaws(() => ({ shards: store, waitUntil: () => {}, settled: async () => {} }))
