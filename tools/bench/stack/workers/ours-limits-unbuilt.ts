/** Like ours-limits.ts, with terms that the Worker parses. */
import { limits } from '../../../../src/limits/limits.ts'
import type { LimitsSettings } from '../variants.ts'
import { byName } from './by-name.ts'

export default byName(({ limits: terms, ...options }: LimitsSettings, env) =>
  limits(terms, { env, ...options }),
)
