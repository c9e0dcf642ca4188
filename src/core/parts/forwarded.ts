import type { Feature } from '../feature.ts'
import { compileForwarded } from '../request/forwarded.ts'

export const forwarded: Feature['compile'] = ({ config: { clientAddress } }) =>
  typeof clientAddress === 'object' ? { compileForwarded } : {}
