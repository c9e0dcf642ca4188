/** Limiters of a configuration that `npx sluice build` has parsed. They load no schema, and only the features that the module names. */
import { apiLua } from '../api/lua.ts'
import { withRedisUrl } from '../core/base/redis-url.ts'
import type { Config } from '../core/config/parse.ts'
import type { ScriptPart } from '../core/connection/upstash/part.ts'
import { operations } from '../core/decide/operate.ts'
import { type Feature, featuresOf, type Limiter } from '../core/feature.ts'
import { limiterOf } from '../core/limiter.ts'
import { verify } from '../features/verify/index.ts'
import { type AppMiddleware, middlewareOf } from '../hosts/app/middleware.ts'
import { type Sluice, withDoor } from '../hosts/app/sluice.ts'
import { type GatewayOptions, type GatewayWorker, workerOf } from '../hosts/worker/answering.ts'
import { gatewayOf, type createGateway as unbuiltGateway } from '../hosts/worker/gateway.ts'
import { type Compared, comparing, namedFeatures } from './compared.ts'

/** @internal */
export { Calendar } from '../core/base/calendar.ts'
/** @internal */
export * from '../features/compile.ts'
/** @internal */
export { banList, keyLimits } from '../features/endpoints/operators.ts'
/** @internal */
export { headerSet } from '../features/header-sets/sets.ts'
/** @internal */
export * from '../features/observe/destinations.ts'
/** @internal */
export { compared, fingerprintOf } from './compared.ts'

/** A host that lacks something: a configuration may need it. @internal */
export type LackingHost = 'node' | 'next'

/** A configuration that is built. Only its module makes it. */
export interface Built {
  /** @internal */
  config: Config
  /** The features without parameters. @internal */
  features: Feature['compile'][]
  /** The hosts that have all that it needs, besides those that lack nothing. @internal */
  fits: LackingHost[]
  /** For live policies: the options, and what loads the parser. @internal */
  live?: { options: object; load: () => Promise<typeof import('./parser.ts')> }
  /** The comparison with its source. @internal */
  compared?: Compared | false
}

/** Gives the module that `npx sluice build` writes its type. @internal */
export const built = (own: Built): Built => own

/** @throws {Error} if `lacking`, the host, lacks what the configuration needs @internal */
export function limiterFor(
  made: Built,
  lacking?: LackingHost,
  lua: readonly ScriptPart[] = [operations],
  byDefault: readonly Feature[] = [],
): Limiter {
  const { config, features, fits, live, compared } = made
  if (lacking && !fits.includes(lacking))
    throw new Error(
      `The configuration needs what sluice/${lacking} lacks, or names no clientAddress. To list it: npx sluice check`,
    )
  const limiter = limiterOf(
    config,
    [...namedFeatures(features), ...featuresOf(config, byDefault)],
    lua,
    live && {
      options: live.options,
      parse: async (options) => (await live.load()).parse(options, lacking),
    },
  )
  return comparing(limiter, compared)
}

/** The configuration of an app, which may name its database by `REDIS_URL`. @internal */
export const ofApp = (made: Built): Built => ({ ...made, config: withRedisUrl(made.config) })

/** `rateLimiter` of `sluice`, for a built configuration. */
export const rateLimiter: AppMiddleware<Built> = (config) => middlewareOf(limiterFor(ofApp(config)))

/** `createSluice` of `sluice`, for a built configuration. */
export const createSluice = (config: Built): Sluice => withDoor(limiterFor(ofApp(config)))

const ofGateway = (made: Built) => limiterFor(made, undefined, apiLua, [verify()])

/** `createGateway` of `sluice`, for a built configuration. */
export const createGateway = (
  config: Built,
  options: GatewayOptions = {},
): ReturnType<typeof unbuiltGateway> => gatewayOf(ofGateway(config), options)

/** The same without Hono. The module of a configuration without functions exports it as `createGateway`. */
export const createWorker = (config: Built, options: GatewayOptions = {}): GatewayWorker =>
  workerOf(ofGateway(config), options)
