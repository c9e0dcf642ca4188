/** Like ours.ts, with several databases. */
import { shards } from '../../../src/features/shards/index.ts'
import { limited } from './limited.ts'

export default limited((settings) => ({ ...settings, use: [shards(settings.use![0]!.databases!)] }))
