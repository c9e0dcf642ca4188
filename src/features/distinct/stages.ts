import { MAX_ENTRIES } from '../../core/base/units.ts'
import { isUsed } from '../../core/config/feature.ts'
import { distinct as algorithm } from '../../core/connection/algorithms/distinct.ts'
import { apart } from '../../core/connection/upstash/apart.ts'
import { check, isId } from '../../core/connection/upstash/arguments.ts'
import type { ScriptPart } from '../../core/connection/upstash/part.ts'
import { distinct as text } from '../../core/connection/upstash/script-text.ts'
import type { NameValues } from '../../core/decide/limit.ts'
import type { Feature } from '../../core/feature.ts'

/** Different values: the digests are the option. */
export const values: ScriptPart = {
  text,
  distinct({ values = [] }, isCharge, place) {
    check(values.every(isId) && (values[0] !== undefined || !isCharge), place, 'values')
    return values.join('/')
  },
}

/** The digests of values, which depend on the key too. A request without a value has one of its own, so that it cannot be repeated for free. */
export const nameValues: NameValues = async (
  { terms, distinct = [], partitionKey, cost },
  nameSubject,
) => {
  const known = distinct.filter(([, value]) => value !== undefined)
  const named = known.map((part) => nameSubject([part, ...partitionKey]))
  // A cost above the limit is refused without its values. That of a body is at most the number of its messages.
  const most = terms.overrides ? MAX_ENTRIES : terms.limit
  const others = Math.min(most, Math.max(cost, distinct.length)) - known.length
  const unknown = Array.from({ length: Math.max(0, others) }, () => crypto.randomUUID())
  return [...(await Promise.all(named)), ...unknown]
}

export const compile: Feature['compile'] = ({ config }) =>
  isUsed(config, ({ distinct }) => distinct)
    ? { lua: [values, apart], algorithms: { distinct: algorithm }, nameValues }
    : {}
