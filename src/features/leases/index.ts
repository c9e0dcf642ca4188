/** An isolate takes units of a busy quota in advance. */
import { isUsed } from '../../core/config/feature.ts'
import type { Feature } from '../../core/feature.ts'
import { declaration } from './declaration.ts'
import { withLeases } from './leases.ts'

/** Lets policies have a `lease`, also those of a live document. */
export const leases = (): Feature => ({
  ...declaration,
  compile: ({ config }) => (isUsed(config, ({ lease }) => lease) ? { layer: withLeases } : {}),
})
