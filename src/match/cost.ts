import type { Cost } from '../config/schema/cost.ts'
import { isTrustedProxy } from '../credentials/trusted-token.ts'
import type { RequestView } from '../request/view.ts'
import { compileCondition } from './condition.ts'

/** Compiles the cost of a request, in units. */
export function compileCost(
  { header, rules, otherwise }: Cost,
  options: { caseSensitivePaths: boolean },
): (view: RequestView) => number | Promise<number> {
  const compiled = rules.map(({ condition, cost }) => ({
    mismatch: compileCondition(condition, options),
    cost,
  }))
  const byRules = (view: RequestView) =>
    compiled.find(({ mismatch }) => !mismatch(view))?.cost ?? otherwise
  if (header === undefined) return byRules
  return async (view) => {
    const value = view.request.headers.get(header)
    const isAccepted = value !== null && /^\d{1,15}$/.test(value) && (await isTrustedProxy(view))
    return isAccepted ? Number(value) : byRules(view)
  }
}
