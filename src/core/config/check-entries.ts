/** Checks for features whose algorithm stores each unit. Only they import this file, so that other Workers have none of it. */
import { MAX_ENTRIES } from '../base/units.ts'
import type { CheckedConfig } from './feature.ts'
import type { Policy } from './schema/policy.ts'
import type { AddProblem } from './schema/shapes.ts'

/**
 * Reports the limits of policies with this algorithm that are too large.
 * @param hint what to write instead
 */
export function checkEntries(
  { policies }: CheckedConfig,
  algorithm: Policy['algorithm'],
  problem: AddProblem,
  hint = '',
) {
  policies.forEach((policy, index) => {
    if (policy?.algorithm !== algorithm) return
    const { limit = 0, claim, plan } = policy
    const sizes: [string[], number][] = [
      [claim ? ['limit', 'max'] : ['limit'], claim?.max ?? limit],
      ...Object.entries(plan?.limits ?? {}).map(([name, size]): [string[], number] => [
        ['limits', name],
        size,
      ]),
    ]
    const expected = `at most ${MAX_ENTRIES} with ${algorithm}${hint}`
    for (const [path, size] of sizes) {
      if (size > MAX_ENTRIES) problem(['policies', index, ...path], expected)
    }
  })
}
