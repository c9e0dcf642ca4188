/** The algorithm that stores the time of every unit. */
import { isUsed } from '../../core/config/feature.ts'
import type { Feature } from '../../core/feature.ts'
import { declaration } from './declaration.ts'
import { logs } from './part.ts'

/** Lets policies have `algorithm: 'sliding-log'`, also those of a live document. */
export const slidingLog = (): Feature => ({
  ...declaration,
  compile: ({ config }) =>
    isUsed(config, ({ algorithm }) => algorithm === 'sliding-log') ? { lua: logs } : {},
})
