/** The general script with the parts of all features. For tools, not for Workers. */
import { apart } from '../core/connection/upstash/apart.ts'
import type { Codec, ScriptPart } from '../core/connection/upstash/part.ts'
import {
  generalScript,
  idempotency,
  operators,
  sliding_log,
} from '../core/connection/upstash/script-text.ts'
import { penalties } from './bans/part.ts'
import { slots } from './concurrency/part.ts'
import { values } from './distinct/part.ts'
import { limitsOfOperators } from './overrides/part.ts'
import { lines } from './turns/part.ts'

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
