import { isUsed } from '../../core/config/feature.ts'
import { distinct as algorithm } from '../../core/connection/algorithms/distinct.ts'
import { apart } from '../../core/connection/upstash/apart.ts'
import { check, isId } from '../../core/connection/upstash/arguments.ts'
import type { ScriptPart } from '../../core/connection/upstash/part.ts'
import { distinct as text } from '../../core/connection/upstash/script-text.ts'
import type { Feature } from '../../core/feature.ts'
import { nameValues } from './values.ts'

/** Different values: the digests are the option. */
export const values: ScriptPart = {
  text,
  distinct({ values = [] }, isCharge, place) {
    check(values.every(isId) && (values[0] !== undefined || !isCharge), place, 'values')
    return values.join('/')
  },
}

export const compile: Feature['compile'] = ({ config }) =>
  isUsed(config, ({ distinct }) => distinct)
    ? { lua: [values, apart], algorithms: { distinct: algorithm }, nameValues }
    : {}
