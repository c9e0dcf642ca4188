import type { Lack } from '../../core/config/parse.ts'
import { createLimiter, type Limiter } from '../../core/create.ts'
import { operations } from '../../core/decide/operate.ts'
import { defaults } from '../../features/defaults.ts'

/** Creates the limiter of an app. @throws {ConfigError} if the configuration is invalid, or needs what the server or framework lacks */
export const createAppLimiter = (options: object, lacks: readonly Lack[] = []): Limiter =>
  createLimiter(options, { byDefault: defaults(), lua: [operations], lacks })
