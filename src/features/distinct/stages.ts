import { isUsed } from '../../core/config/feature.ts'
import { distinct as algorithm } from '../../core/connection/algorithms/distinct.ts'
import { apart } from '../../core/connection/upstash/apart.ts'
import type { Feature } from '../../core/feature.ts'
import { values } from './part.ts'
import { nameValues } from './values.ts'

/** What it does, without what it adds to configurations. */
export const compile: Feature['compile'] = ({ config }) =>
  isUsed(config, ({ distinct }) => distinct)
    ? { lua: [values, apart], algorithms: { distinct: algorithm }, nameValues }
    : {}
