import { ConfigError } from '../../core/base/errors.ts'
import type { ConfigOptions } from '../../core/config/options.ts'
import { type Config, parseConfig } from '../../core/config/parse.ts'
import { createLimiter, type Limiter } from '../../core/create.ts'

/**
 * Creates the limiter of an app, which has no origin of its own.
 * @throws {ConfigError} if the configuration is invalid
 */
export function createAppLimiter<Context>(
  options: Omit<ConfigOptions<Context>, 'origin'>,
): Limiter {
  const config = parseConfig(options)
  checkBefore(config)
  return createLimiter(config, options)
}

/**
 * Rejects `check: 'parallel'` inside of an app: its handlers may have side effects.
 * @throws {ConfigError}
 */
function checkBefore({ policies }: Config) {
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
