/** `limits` by name and key, built. */
import { type BuiltLimits, built, limits } from '../../../../src/built/limits.ts'
import { byName } from './by-name.ts'

export default byName((config: BuiltLimits<string>['config'], env) =>
  limits(built({ names: ['quota-0'], config, features: [] }), { env }),
)
