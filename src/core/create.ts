/** Creates the limiter of a configuration as it is written. */
import { type Lack, parseConfig } from './config/parse.ts'
import type { ScriptPart } from './connection/upstash/part.ts'
import { type Feature, featuresOf } from './feature.ts'
import { limiterOf } from './limiter.ts'

export type { Limiter } from './feature.ts'

export interface Host {
  /** The features that it has besides those of `use`. Defaults to none. */
  byDefault?: readonly Feature[]
  /** The parts of the general script that it needs besides those of features. Defaults to none. */
  lua?: readonly ScriptPart[]
  lacks?: readonly Lack[]
}

/** @throws {ConfigError} if the configuration is invalid, or if a field needs another feature or another host */
export function createLimiter(options: object, { byDefault = [], lua, lacks = [] }: Host = {}) {
  const parse = (options: object) => parseConfig(options, byDefault, lacks)
  const config = parse(options)
  return limiterOf(config, featuresOf(config, byDefault), lua, { options, parse })
}
