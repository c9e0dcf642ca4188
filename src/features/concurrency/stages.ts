import { isUsed } from '../../core/config/feature.ts'
import { apart } from '../../core/connection/upstash/apart.ts'
import { check, isId } from '../../core/connection/upstash/arguments.ts'
import type { ScriptPart } from '../../core/connection/upstash/part.ts'
import { concurrency as text } from '../../core/connection/upstash/script-text.ts'
import type { Feature } from '../../core/feature.ts'
import { whenEnded } from '../../core/respond/body-end.ts'

/** Slots: their id is the option. */
export const slots: ScriptPart = {
  text,
  concurrency({ slot = '' }, isCharge, place) {
    check(isId(slot) || (slot === '' && !isCharge), place, 'slot')
    return slot
  },
}

export const compile: Feature['compile'] = ({ config }) =>
  isUsed(config, ({ algorithm }) => algorithm === 'concurrency')
    ? { lua: [slots, apart], whenEnded }
    : {}
