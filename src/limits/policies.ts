import type { Limiter } from '../core/feature.ts'
import { matchByKey } from '../core/program/explicit-key.ts'
import { createDoor, type Limits } from './door.ts'

/**
 * The policies of a configuration as limits: they count what requests with that key count. The conditions of a policy, and the lists `allow` and
 * `deny`, do not apply.
 */
export const policyDoor = (limiter: Limiter): Limits =>
  createDoor(limiter, (name, key, plan, env) => {
    const runtime = { env, context: undefined, waitUntil: () => {} }
    return matchByKey(limiter.rulesOf(runtime).config, name, key, plan)
  })
