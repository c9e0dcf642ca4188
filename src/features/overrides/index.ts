/** Operators set the limits of single keys. */
import { isUsed } from '../../core/config/feature.ts'
import type { Feature } from '../../core/feature.ts'
import { declaration } from './declaration.ts'
import { limitsOfOperators } from './part.ts'

/** Lets policies have `overrides: true`, also those of a live document. */
export const overrides = (): Feature => ({
  ...declaration,
  compile: ({ config }) =>
    isUsed(config, ({ overrides }) => overrides) ? { lua: [limitsOfOperators] } : {},
})
