import { createDenialCache } from '../decide/denial-cache.ts'
import type { Feature } from '../feature.ts'

export const denialCache: Feature['compile'] = ({ config }) =>
  config.denialCache ? { createDenialCache } : {}
