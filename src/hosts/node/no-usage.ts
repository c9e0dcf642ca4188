import type { ConfigProblem } from '../../core/base/errors.ts'
import { ConfigError } from '../../core/base/errors.ts'
import { type Config, parseConfig } from '../../core/config/parse.ts'

/** The problems of policies with `cost.usage`, for an adapter that does not see the bodies of responses. */
export const usageProblems = ({ policies }: Config, reason: string): ConfigProblem[] =>
  policies.flatMap(({ cost: { usage } }, index) =>
    usage
      ? [
          {
            path: `policies[${index}].cost.usage`,
            expected: `nothing, because ${reason}`,
            got: JSON.stringify(usage),
          },
        ]
      : [],
  )

/**
 * Rejects `cost.usage` on Node's servers, which write their responses themselves.
 * @throws {ConfigError}
 */
export function checkUsageUnused(options: unknown): void {
  const problems = usageProblems(
    parseConfig(options),
    'sluice/node does not see the body of the response: use createSluice, and pass the Response to finish',
  )
  if (problems.length > 0) throw new ConfigError(problems)
}
