/** Compares a module with the configuration that it was built from. */
import { fnv1a } from '../core/base/fnv.ts'
import { NotConfigured } from '../core/decide/database.ts'
import type { Engine } from '../core/decide/engine.ts'
import type { Feature } from '../core/feature.ts'

/** The error of a module that is stale. @internal */
export interface Compared {
  error?: NotConfigured
}

const isPlain = (value: object) =>
  [Object.prototype, Array.prototype, null].includes(Object.getPrototypeOf(value))

/**
 * A hash of the values of a configuration, and of the names or the settings of its features. It is the same with other functions, and with
 * other objects of a class.
 * @internal
 */
export const fingerprintOf = (options: object): number =>
  fnv1a(
    JSON.stringify(options, (name, value) => {
      if (name === 'use') return [value].flat().map((one) => one?.built ?? one?.name)
      return Object(value) === value && !isPlain(value) ? typeof value : value
    }),
  )

/**
 * Compares a module with its source.
 * @param source the configuration as it is written, whose functions must be those of the build; or loads it, in development
 * @throws {ConfigError} if the configuration has changed since the build
 * @internal
 */
export function compared(fingerprint: number, source: object): Compared {
  const made: Compared = {}
  const compare = (options: object) => {
    if (fingerprintOf(options) !== fingerprint) made.error = new NotConfigured([STALE])
  }
  // A deployment may lack the source, which is then not compared.
  if (typeof source === 'function')
    source()
      .then(({ default: options }: { default: object }) => compare(options))
      .catch(() => {})
  else compare(source)
  if (made.error) throw made.error
  return made
}

const STALE = {
  path: 'sluice.built.ts',
  expected: 'the module of sluice.config.ts as it is now',
  got: 'an older one',
  hint: 'Run: npx sluice build',
}

/** The engine of a module, which fails each call once the module has proved stale. */
export function comparing<Own extends Engine>(
  engine: Own,
  compared: Compared | false = false,
): Own {
  const { partsOf } = engine
  if (compared)
    engine.partsOf = (env) => {
      if (compared.error) throw compared.error
      return partsOf(env)
    }
  return engine
}

/** The features of a module, which need no names: the module names none that its configuration replaces. */
export const namedFeatures = (features: Feature['compile'][]): Feature[] =>
  features.map((compile, index) => ({ name: `${index}`, compile }))
