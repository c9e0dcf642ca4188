/** The middleware with the settings of the variant, built. */
import { limited } from './limited.ts'

export default limited()
