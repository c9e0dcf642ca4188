/** Limits on the number of different values. */
import { isUsed } from '../../core/config/feature.ts'
import { distinct as algorithm } from '../../core/connection/algorithms/distinct.ts'
import { apart } from '../../core/connection/upstash/apart.ts'
import type { Feature } from '../../core/feature.ts'
import { declaration } from './declaration.ts'
import { values } from './part.ts'
import { nameValues } from './values.ts'

/** Lets policies have `distinct`, also those of a live document. */
export const distinct = (): Feature => ({
  ...declaration,
  compile: ({ config }) =>
    isUsed(config, ({ distinct }) => distinct)
      ? { lua: [values, apart], algorithms: { distinct: algorithm }, nameValues }
      : {},
})
