import type { ScriptPart } from '../core/connection/upstash/part.ts'
import { idempotency, operators } from '../core/connection/upstash/script-text.ts'

/** The parts of the general script that only the decision API needs. */
export const apiLua: readonly ScriptPart[] = [{ text: operators }, { text: idempotency }]
