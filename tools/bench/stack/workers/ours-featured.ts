/** Like ours.ts, for the variants whose settings need a feature. */
import { leases, slidingLog } from '../../../../src/built/built.ts'
import { limited } from './limited.ts'

export default limited(undefined, [leases, slidingLog])
