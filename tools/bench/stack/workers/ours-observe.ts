/** Like ours.ts, with `observe`. */
import { observe } from '../../../../src/features/observe/index.ts'
import { limited } from './limited.ts'

export default limited((settings) => ({ ...settings, use: [observe({ to: 'log' })] }))
