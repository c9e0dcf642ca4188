import { trustedNames } from '../../core/config/trusted-names.ts'
import type { Feature } from '../../core/feature.ts'
import { networks } from './networks.ts'

export const compile: Feature['compile'] = ({ config }) =>
  trustedNames(config.clientAddress)[0] ? { networks } : {}
