import { isUsed } from '../config/feature.ts'
import type { Feature } from '../feature.ts'
import { settleLater } from '../settle-later.ts'

export const settling: Feature['compile'] = ({ config }) =>
  isUsed(config, ({ settles }) => settles) ? { settleLater } : {}
