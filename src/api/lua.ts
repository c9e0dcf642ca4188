import type { ScriptPart } from '../core/connection/upstash/part.ts'
import { idempotency } from '../core/connection/upstash/script-text.ts'
import { operations } from '../core/decide/operate.ts'

/** The parts of the general script that only the decision API needs. */
export const apiLua: readonly ScriptPart[] = [operations, { text: idempotency }]
