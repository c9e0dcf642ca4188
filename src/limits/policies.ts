import type { Limiter } from '../core/feature.ts'
import { matchByKey } from '../core/program/explicit-key.ts'
import { Door, type LimitRuntime, type Limits } from './door.ts'

/** The policies of a configuration as limits: see `Sluice`. @param byDefault what calls have that say nothing else. Defaults to the process */
export const policyDoor = (limiter: Limiter, byDefault?: LimitRuntime): Limits =>
  new Door(
    limiter,
    (name, key, plan, env) => {
      const runtime = { env, context: undefined, waitUntil: () => {} }
      return matchByKey(limiter.rulesOf(runtime), name, key, plan)
    },
    byDefault,
  )
