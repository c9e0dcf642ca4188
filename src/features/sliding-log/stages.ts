import { isUsed } from '../../core/config/feature.ts'
import { apart } from '../../core/connection/upstash/apart.ts'
import type { ScriptPart } from '../../core/connection/upstash/part.ts'
import { sliding_log as text } from '../../core/connection/upstash/script-text.ts'
import type { Feature } from '../../core/feature.ts'

/** The parts of the general script that limits with `algorithm: 'sliding-log'` need. */
export const logs: readonly ScriptPart[] = [{ text }, apart]

export const compile: Feature['compile'] = ({ config }) =>
  isUsed(config, ({ algorithm }) => algorithm === 'sliding-log') ? { lua: logs } : {}
