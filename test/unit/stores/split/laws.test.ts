import { splitLaws } from '../../../support/split-laws.ts'
import { useSplitRedis } from '../../../support/split-redis.ts'

const { newStore } = useSplitRedis()
splitLaws(() => newStore())
