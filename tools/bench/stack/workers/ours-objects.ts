/** Like ours.ts, with `durableObjects()`. */
import { durableObjects } from '../../../../src/stores/durable-objects/index.ts'
import { limited } from './limited.ts'

export { SluiceSubject } from '../../../../src/stores/durable-objects/index.ts'
export default limited((settings) => ({ ...settings, store: durableObjects() }))
