import type { ConfigOptions } from '../../core/config/options.ts'
import type { Lack } from '../../core/config/parse.ts'
import { createLimiter, type Limiter } from '../../core/create.ts'
import { operations } from '../../core/decide/operate.ts'
import { defaults } from '../../features/defaults.ts'

/**
 * Creates the limiter of an app, which has no origin of its own, and whose handlers may have side effects.
 * @param lacks what the server or framework does not show
 * @throws {ConfigError} if the configuration is invalid, or needs what the host lacks
 */
export function createAppLimiter<Context>(
  options: Omit<ConfigOptions<Context>, 'origin'>,
  lacks: readonly Lack[] = [],
): Limiter {
  return createLimiter(options, { byDefault: defaults(), lua: [operations], lacks })
}
