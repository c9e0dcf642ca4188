import type { Config, Policy } from '../config/parse.ts'
import type { RequestView } from '../request/view.ts'
import { compileRules, reached } from './condition.ts'

/** Compiles the share of the quota that a request must leave free: that of the first rule that matches, otherwise 0; of several that may be the first, the largest. `undefined` without rules. */
export function compileReserve(
  { reserve }: Policy,
  config: Pick<Config, 'caseSensitivePaths'>,
): ((view: RequestView) => number) | undefined {
  if (reserve.length === 0) return undefined
  const rules = compileRules(reserve, config)
  return (view) => Math.max(0, ...reached(rules, view)[0].map(({ share }) => share))
}
