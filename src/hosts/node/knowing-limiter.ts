import type { Lack } from '../../core/config/parse.ts'
import type { Limiter } from '../../core/create.ts'
import { createAppLimiter } from '../app/app-limiter.ts'
import { checkAddress } from './lacks.ts'

/** Creates the limiter of an app. @throws {ConfigError} if the configuration is invalid, or its client address has no source */
export function createKnowingLimiter(options: object, lacks: readonly Lack[]): Limiter {
  const limiter = createAppLimiter(options, lacks)
  checkAddress(limiter.config, limiter.readAddress)
  return limiter
}
