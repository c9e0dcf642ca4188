/** Limiters of a configuration that `npx sluice build` has parsed. They load no schema, and only the features that the module names. */
import type { Env } from 'hono'
import { apiLua } from './api/lua.ts'
import { fnv1a } from './core/base/fnv.ts'
import { type Config, parseConfig } from './core/config/parse.ts'
import type { ScriptPart } from './core/connection/upstash/part.ts'
import { operations } from './core/decide/operate.ts'
import type { Feature } from './core/feature.ts'
import { type ConfigSource, limiterOf } from './core/limiter.ts'
import { defaultFields } from './features/defaults.ts'
import { verify } from './features/verify/index.ts'
import { middlewareOf, type rateLimiter as unbuiltMiddleware } from './hosts/app/middleware.ts'
import { type Sluice, withDoor } from './hosts/app/sluice.ts'
import {
  type GatewayOptions,
  gatewayOf,
  type createGateway as unbuiltGateway,
} from './hosts/worker/gateway.ts'

/** @internal */
export * from './features/compile.ts'
/** @internal */
export { headerSet } from './features/header-sets/sets.ts'

/** A configuration that is built. Its module makes it. */
export interface Built {
  /** Made by the module only. */
  readonly isBuilt: true
  /** @internal */
  config: Config
  /** The features without parameters. @internal */
  features: Feature['compile'][]
  /** The parser of live policies. @internal */
  source?: ConfigSource
}

/** What a configuration is known by. Functions are equal. @internal */
export const fingerprintOf = (options: object): number =>
  fnv1a(JSON.stringify(options, (_, value) => (typeof value === 'function' ? 'function' : value)))

/**
 * Called by the module that `npx sluice build` writes.
 * @param options the configuration as it is written, if it has functions. They must be those of the build
 * @throws {Error} if the configuration has changed since the build
 * @internal
 */
export function built(own: Omit<Built, 'isBuilt'>, options?: object, fingerprint?: number): Built {
  if (options && fingerprintOf(options) !== fingerprint)
    throw new Error(
      'The built configuration is not that of sluice.config.ts any more. Run: npx sluice build',
    )
  return { ...own, isBuilt: true }
}

const limiterFor = (
  { config, features, source }: Built,
  lua: readonly ScriptPart[] = [operations],
  ...more: Feature[]
) => {
  const own = features.map((compile, index) => ({ name: `${index}`, compile }))
  return limiterOf(config, [...own, ...more, ...(config.use as Feature[])], lua, source)
}

/** `rateLimiter` of `sluice`, for a built configuration. */
// biome-ignore lint/suspicious/noExplicitAny: fits an app of any environment, like Hono's own handlers
export const rateLimiter = <E extends Env = any>(
  config: Built,
): ReturnType<typeof unbuiltMiddleware<E>> => middlewareOf(limiterFor(config))

/** `createSluice` of `sluice`, for a built configuration. */
export const createSluice = (config: Built): Sluice => withDoor(limiterFor(config))

/** `createGateway` of `sluice`, for a built configuration. */
export const createGateway = (
  config: Built,
  options: GatewayOptions = {},
): ReturnType<typeof unbuiltGateway> => {
  const verifies = config.config.use.some(({ name }) => name === 'verify')
  return gatewayOf(limiterFor(config, apiLua, ...(verifies ? [] : [verify()])), options)
}

/** Parses the documents of live policies. Only a module with `live` imports it. @internal */
export const parser = (options: object): Config => parseConfig(options, defaultFields)
