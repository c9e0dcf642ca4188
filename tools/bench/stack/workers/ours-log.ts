/** Like ours.ts, with `slidingLog`. */
import { slidingLog } from '../../../../src/features/sliding-log/index.ts'
import { limited } from './limited.ts'

export default limited((settings) => ({ ...settings, use: [slidingLog()] }))
