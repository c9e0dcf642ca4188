/** Like ours.ts, with `leases`. */
import { leases } from '../../../../src/features/leases/index.ts'
import { limited } from './limited.ts'

export default limited((settings) => ({ ...settings, use: [leases()] }))
