/** Limits on requests in flight. */
import { isUsed } from '../../core/config/feature.ts'
import { apart } from '../../core/connection/upstash/apart.ts'
import type { Feature } from '../../core/feature.ts'
import { whenEnded } from '../../core/respond/body-end.ts'
import { declaration } from './declaration.ts'
import { slots } from './part.ts'

/** Lets policies have `algorithm: 'concurrency'`, also those of a live document. */
export const concurrency = (): Feature => ({
  ...declaration,
  compile: ({ config }) =>
    isUsed(config, ({ algorithm }) => algorithm === 'concurrency')
      ? { lua: [slots, apart], whenEnded }
      : {},
})
