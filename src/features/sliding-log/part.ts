import { apart } from '../../core/connection/upstash/apart.ts'
import type { ScriptPart } from '../../core/connection/upstash/part.ts'
import { sliding_log as text } from '../../core/connection/upstash/script-text.ts'

/** The parts of the general script that limits with `algorithm: 'sliding-log'` need. */
export const logs: readonly ScriptPart[] = [{ text }, apart]
