import type { Feature } from '../feature.ts'
import { clientValues as sources } from '../program/client-values.ts'
import { readsSource } from '../program/source.ts'

export const clientValues: Feature['compile'] = ({ config }) =>
  readsSource(config, sources) ? { sources } : {}
