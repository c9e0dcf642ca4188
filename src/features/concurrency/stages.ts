import { isUsed } from '../../core/config/feature.ts'
import { apart } from '../../core/connection/upstash/apart.ts'
import type { Feature } from '../../core/feature.ts'
import { whenEnded } from '../../core/respond/body-end.ts'
import { slots } from './part.ts'

/** What it does, without what it adds to configurations. */
export const compile: Feature['compile'] = ({ config }) =>
  isUsed(config, ({ algorithm }) => algorithm === 'concurrency')
    ? { lua: [slots, apart], whenEnded }
    : {}
