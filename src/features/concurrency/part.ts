import { check, isId } from '../../core/connection/upstash/arguments.ts'
import type { ScriptPart } from '../../core/connection/upstash/part.ts'
import { concurrency as text } from '../../core/connection/upstash/script-text.ts'

/** Slots: their id is the option. */
export const slots: ScriptPart = {
  text,
  concurrency({ slot = '' }, isCharge, place) {
    check(isId(slot) || (slot === '' && !isCharge), place, 'slot')
    return slot
  },
}
