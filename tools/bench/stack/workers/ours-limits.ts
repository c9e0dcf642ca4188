/** `limits` by name and key, built. */
import {
  type BuiltLimits,
  built,
  denialCache,
  limits,
  local,
} from '../../../../src/built/limits.ts'
import { byName } from './by-name.ts'

export default byName((config: BuiltLimits<string>['config'], env) =>
  limits(built({ names: ['quota-0'], config, features: [denialCache, local] }), { env }),
)
