import type { Soon } from '../base/when-known.ts'
import type { Policy } from '../config/parse.ts'
import { isTrustedProxy } from '../request/trusted-token.ts'
import type { RequestView } from '../request/view.ts'
import { compileRules, reached } from './condition.ts'

/** Compiles the cost of a request, in units. `undefined` if it is always `cost.otherwise`. */
export function compileCost(
  { cost, usesBody }: Pick<Policy, 'cost' | 'usesBody'>,
  options: { caseSensitivePaths: boolean },
): ((view: RequestView) => Soon<number>) | undefined {
  const { header, rules, otherwise } = cost
  if (header === undefined && rules.length === 0 && !usesBody) return undefined
  const compiled = compileRules(rules, options)
  const byRules = (view: RequestView) => {
    if (view.message) return view.message.cost(compiled, cost, view)
    if (compiled.length === 0) return otherwise
    const [rules, isDecided] = reached(compiled, view)
    return Math.max(...rules.map((rule) => rule.cost), ...(isDecided ? [] : [otherwise]))
  }
  if (header === undefined) return byRules
  return (view) => {
    const value = view.request.headers.get(header)
    if (value === null || !/^\d{1,15}$/.test(value)) return byRules(view)
    return isTrustedProxy(view).then((isTrusted) => (isTrusted ? Number(value) : byRules(view)))
  }
}
