import { contains } from '../base/contains.ts'
import type { Config } from '../config/parse.ts'

export type MatchConfig = Pick<
  Config,
  'policies' | 'allow' | 'deny' | 'tables' | 'caseSensitivePaths' | 'apiKeys' | 'shield'
>

/** True if the path of a request has an effect: a condition by path, or a part of a key that is in the path. */
export const usesPath = ({ policies, allow, deny, shield }: MatchConfig): boolean =>
  contains(
    [policies, allow, deny, shield],
    ({ path, source }) => path !== undefined || source === 'path' || source === 'path-parameter',
  )

/** True if a configuration treats requests differently: by conditions or paths, or by costs and reserves that depend on the request. */
export function tellsApart(config: MatchConfig): boolean {
  for (const { match, cost, reserve, usesBody } of config.policies) {
    if (usesBody || cost.header !== undefined || reserve.length + cost.rules.length > 0) return true
    for (const one of Object.values(match)) if (one !== undefined) return true
  }
  return config.allow.length + config.deny.length > 0 || usesPath(config)
}
