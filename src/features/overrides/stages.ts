import { isUsed } from '../../core/config/feature.ts'
import { resized } from '../../core/connection/algorithms/index.ts'
import { check, isUnits, isWhole, termsText } from '../../core/connection/upstash/arguments.ts'
import type { ScriptPart } from '../../core/connection/upstash/part.ts'
import { override as text } from '../../core/connection/upstash/script-text.ts'
import type { Feature } from '../../core/feature.ts'

/** The limit of an operator in units and the rest of its life in ms, or nothing. */
const OVERRIDE = /^=(?:([1-9]\d{0,15}):(\d{1,16}))?$/

/** Limits of operators: each precedes its limit, and the reply has them before the states. */
export const limitsOfOperators: ScriptPart = {
  text,
  override: {
    write(request, limit, place) {
      const { share, scalesBurst } = limit.override!
      const head = `;${limit.terms.tag}-limit:override,${share},${scalesBurst ? 1 : 0},`
      check(share >= 0 && share <= 1, place, 'share')
      if (request.mode !== 'override') return `${head},0`
      const { forMs, units } = request
      check(isWhole(forMs, 1), place, 'forMs')
      check(isUnits(units, 1), place, 'limit')
      termsText(resized(limit, units).terms, place)
      return `${head}${forMs},${units}`
    },
    read(part, limit, stateOf) {
      const found = OVERRIDE.exec(part)
      if (!found) return undefined
      const [, units, rest] = found
      if (!units) return stateOf(limit)
      const [size, overriddenForMs] = [Number(units), Number(rest)]
      const state = stateOf(resized(limit, size))
      if (!state || !Number.isSafeInteger(size) || !Number.isSafeInteger(overriddenForMs))
        return undefined
      return { ...state, limit: size, overriddenForMs }
    },
  },
}

export const compile: Feature['compile'] = ({ config }) =>
  isUsed(config, ({ overrides }) => overrides) ? { lua: [limitsOfOperators] } : {}
