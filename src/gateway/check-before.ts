import { ConfigError } from '../base/errors.ts'
import type { Config } from '../config/parse.ts'

/**
 * Rejects `check: 'parallel'` inside of an app: its handlers may have side effects.
 * @throws {ConfigError}
 */
export function checkBefore({ policies }: Config) {
  const problems = policies.flatMap(({ check }, index) =>
    check === 'before'
      ? []
      : [
          {
            path: `policies[${index}].check`,
            expected: 'before (only the gateway has an origin to call in parallel)',
            got: JSON.stringify(check),
          },
        ],
  )
  if (problems.length > 0) throw new ConfigError(problems)
}
