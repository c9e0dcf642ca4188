/** `sluice/limits` for terms that `npx sluice build` has parsed. They load no schema, and only the features that the terms need. */
import { withRedisUrl } from '../core/base/redis-url.ts'
import type { Config } from '../core/config/parse.ts'
import type { Feature } from '../core/feature.ts'
import type { Limits } from '../limits/door.ts'
import { engineOf, namedLimits } from '../limits/named.ts'
import { type Compared, comparing, namedFeatures } from './compared.ts'

/** @internal */
export { Calendar } from '../core/base/calendar.ts'
/** @internal */
export * from '../features/compile.ts'
/** @internal */
export * from '../features/observe/destinations.ts'
/** @internal */
export { compared } from './compared.ts'

/** Limits that are built. Only their module makes them. */
export interface BuiltLimits<Name extends string> {
  /** The names of the limits. */
  names: readonly Name[]
  /** @internal */
  config: Config
  /** The features that the terms need. @internal */
  features: Feature['compile'][]
  /** The comparison with its source. @internal */
  compared?: Compared | false
}

/** Gives the module that `npx sluice build` writes its type, with the names of the limits. */
export const built = <Name extends string>(own: BuiltLimits<Name>): BuiltLimits<Name> => own

/**
 * `limits` of `sluice/limits`, for built terms.
 * @param options `env`: variables and bindings, such as `env` of `cloudflare:workers`. Defaults to the variables of the process. A call may
 *   have others
 */
export function limits<Name extends string>(
  made: BuiltLimits<Name>,
  options: { env?: object } = {},
): Limits<Name> {
  const config = withRedisUrl(made.config, options.env)
  const engine = engineOf(config, namedFeatures(made.features))
  return namedLimits(comparing(engine, made.compared), options.env)
}
