import type { Limiter } from '../core/feature.ts'
import { matchByKey, policyOf } from '../core/program/explicit-key.ts'
import { noneOf } from './check.ts'
import { Door, type LimitRuntime, type Limits } from './door.ts'

/** The policies of a configuration as limits: see `Sluice`. @param byDefault what calls have that say nothing else. Defaults to the process */
export const policyDoor = (limiter: Limiter, byDefault?: LimitRuntime): Limits =>
  new Door(
    limiter,
    (name, key, plan, env) => {
      const runtime = { env, context: undefined, waitUntil: () => {} }
      const rules = limiter.rulesOf(runtime)
      if (typeof name !== 'string' || policyOf(rules, name))
        return matchByKey(rules, name, key, plan)
      // Unlike callers of the decision API, the app may know all names.
      const names = rules.config.policies.map((policy) => policy.name)
      return noneOf('policy', names, name)
    },
    byDefault,
  )
