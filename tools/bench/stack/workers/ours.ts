/** The middleware with the settings of the variant. */
import { limited } from './limited.ts'

export default limited((settings) => settings)
