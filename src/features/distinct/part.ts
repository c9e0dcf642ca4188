import { check, isId } from '../../core/connection/upstash/arguments.ts'
import type { ScriptPart } from '../../core/connection/upstash/part.ts'
import { distinct as text } from '../../core/connection/upstash/script-text.ts'

/** Different values: the digests are the option. */
export const values: ScriptPart = {
  text,
  distinct({ values = [] }, isCharge, place) {
    check(values.every(isId) && (values[0] !== undefined || !isCharge), place, 'values')
    return values.join('/')
  },
}
