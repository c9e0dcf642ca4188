import type { Cost } from '../config/schema/cost.ts'
import { isGate } from '../credentials/trusted-token.ts'
import type { Seen } from '../request/view.ts'
import { compileCondition } from './condition.ts'

/** Compiles the price of a request, in units. */
export function compileCost(
  { header, rules, otherwise }: Cost,
  options: { caseSensitivePaths: boolean },
): (seen: Seen) => number | Promise<number> {
  const compiled = rules.map(({ condition, cost }) => ({
    mismatch: compileCondition(condition, options),
    cost,
  }))
  const byRules = (seen: Seen) =>
    compiled.find(({ mismatch }) => !mismatch(seen))?.cost ?? otherwise
  if (header === undefined) return byRules
  return async (seen) => {
    const said = seen.request.headers.get(header)
    // From anybody else it is nothing but a wish.
    const cost =
      said !== null && /^\d{1,15}$/.test(said) && (await isGate(seen)) ? Number(said) : undefined
    return cost ?? byRules(seen)
  }
}
