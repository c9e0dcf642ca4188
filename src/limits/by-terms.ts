/** Limits whose terms each call brings, for a library that sets them. */
import { Recent } from '../core/base/recent.ts'
import { withRedisUrl } from '../core/base/redis-url.ts'
import type { FeatureFields } from '../core/config/feature.ts'
import type { Policy } from '../core/config/parse.ts'
import type { ScriptPart } from '../core/connection/upstash/part.ts'
import { matchWith } from '../core/decide/matched.ts'
import { createLocalStore } from '../core/fallback/local.ts'
import type { Feature } from '../core/feature.ts'
import { denialCache } from '../core/parts/denial-cache.ts'
import { Door, type Limits } from './door.ts'
import { engineOf } from './named.ts'
import { type LimitsOptions, type LimitTerms, parseLimits } from './terms.ts'

/** What terms may need that the first call brings. */
const parts: readonly Feature[] = [
  { name: 'denialCache', compile: denialCache },
  { name: 'local', compile: () => ({ createLocal: createLocalStore }) },
]

/** The most sets of terms that are kept parsed. */
const MAX_TERMS = 1_000

/**
 * @param name names the counters in the store
 * @param fields those that the terms have besides those of the core. Defaults to none
 * @param lua the parts of the script that the terms need. Defaults to none
 * @throws {ConfigError} immediately, if an option is invalid
 */
export function doorByTerms(
  name: string,
  options: LimitsOptions,
  fields: readonly FeatureFields[] = [],
  lua: readonly ScriptPart[] = [],
): Limits<LimitTerms> {
  const { env, ...settings } = withRedisUrl(options)
  const parse = (terms: Record<string, LimitTerms>) => parseLimits(terms, settings, fields)
  const known = new Recent<Policy>(MAX_TERMS)
  function find(terms: LimitTerms, key: unknown) {
    const id = JSON.stringify(terms)
    let policy = known.get(id)
    if (!policy) {
      policy = parse({ [name]: terms }).policies[0]!
      known.set(id, policy)
    }
    return matchWith(policy, [['key', `${key}`]])
  }
  return new Door(engineOf(parse({}), parts, lua), find, { env })
}
