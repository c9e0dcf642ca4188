import type { Feature } from '../feature.ts'
import { readsSource, clientValues as sources } from '../program/source.ts'

export const clientValues: Feature['compile'] = ({ config }) =>
  readsSource(config, sources) ? { sources } : {}
