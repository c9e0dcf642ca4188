import { trustedNames } from '../../core/config/trusted-names.ts'
import type { Feature } from '../../core/feature.ts'
import { networks } from './networks.ts'

/** What it does, without what it adds to configurations. */
export const compile: Feature['compile'] = ({ config }) =>
  trustedNames(config.clientAddress)[0] ? { networks } : {}
