/** The general script with the parts of all features. For tools, not for Workers. */
import { apart } from '../../../src/core/connection/upstash/apart.ts'
import type { Codec, ScriptPart } from '../../../src/core/connection/upstash/part.ts'
import {
  generalScript,
  idempotency,
  operators,
  sliding_log,
} from '../../../src/core/connection/upstash/script-text.ts'
import { penalties } from '../../../src/features/bans/stages.ts'
import { slots } from '../../../src/features/concurrency/stages.ts'
import { values } from '../../../src/features/distinct/stages.ts'
import { limitsOfOperators } from '../../../src/features/overrides/stages.ts'
import { lines } from '../../../src/features/turns/stages.ts'

export const allParts: readonly ScriptPart[] = [
  apart,
  slots,
  values,
  { text: idempotency },
  { text: operators },
  limitsOfOperators,
  lines,
  penalties,
  { text: sliding_log },
]

export const codec: Codec = Object.assign({}, ...allParts)

export const script = generalScript(allParts)
