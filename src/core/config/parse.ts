import type * as v from 'valibot'
import { ConfigError, type ConfigProblem } from '../base/errors.ts'
import { shortened } from '../base/show.ts'
import type { FeatureFields } from './feature.ts'
import { checkNeeds } from './needs.ts'
import { parseOwned } from './owned.ts'
import { checked, problemAt, withoutSecret } from './schema/checked.ts'
import { type Config, config, configWith } from './schema/config.ts'
import type { AddProblem } from './schema/shapes.ts'

export type { Config, ListEntry } from './schema/config.ts'
export type { Policy } from './schema/policy.ts'

/** The parsed configurations: several limiters may get the same object. It is frozen, so that no later change is ignored. */
const known = new WeakMap<object, Config>()

/**
 * Parses untrusted input into a configuration. The same object is parsed once, and frozen.
 * @param byDefault the features besides those of `use`. By default it is not known which ones the host has: fields of its
 * features are accepted as they are
 * @param onParsed is called before fields of features are checked
 * @throws {ConfigError} lists every problem: path, expected, got
 */
export function parseConfig(
  options: unknown,
  byDefault?: readonly FeatureFields[],
  onParsed?: (config: Config) => void,
): Config {
  const isObject = typeof options === 'object' && options !== null
  const parsed = (isObject && known.get(options)) || parse(config, options, byDefault)
  if (isObject) known.set(options, parsed)
  freeze(options)
  onParsed?.(parsed)
  return byDefault ? withFeatures(parsed, options as object, byDefault) : parsed
}

/** Freezes plain objects and lists, so that a later change is an error instead of ignored. */
function freeze(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return
  if (!Array.isArray(value) && Object.getPrototypeOf(value) !== Object.prototype) return
  Object.freeze(value)
  for (const part of Object.values(value)) freeze(part)
}

/**
 * Returns a parsed configuration with the fields of the features that its host has besides those of `use`.
 * @param options the object that the configuration was parsed from
 * @throws {ConfigError} if a field needs another feature, or a feature of the host finds a problem
 */
function withFeatures(
  config: Config,
  options: object,
  byDefault: readonly FeatureFields[],
): Config {
  const problems: ConfigProblem[] = []
  const add: AddProblem = (path, expected, isKey) =>
    problems.push(problemIn(options, path, expected, isKey))
  const names = config.use.map(({ name }) => name)
  const others = byDefault.filter(({ name }) => !names.includes(name))
  const whole = { ...config, policies: config.policies.map((policy) => ({ ...policy })) }
  parseOwned(whole, others, add)
  checkNeeds(whole, [...names, ...others.map(({ name }) => name)], add)
  // Those of `use` again: now they see the fields of all features.
  for (const one of [...config.use, ...others]) one.check?.(whole, add)
  if (problems.length > 0) throw new ConfigError(problems)
  return whole
}

/** A problem of a part of a configuration, in the context of its policy. */
export const problemIn = (
  options: object,
  path: readonly (string | number)[],
  expected: string,
  isKey?: boolean,
): ConfigProblem => inContext(problemAt(options, path, expected, 'config', isKey), options)

/**
 * Parses input with a schema.
 * @param byDefault the features besides those of `use`, if the input is a configuration
 * @throws {ConfigError} lists every problem
 */
export function parse<T>(
  schema: v.GenericSchema<unknown, T>,
  input: unknown,
  byDefault: readonly FeatureFields[] = [],
): T {
  const { output, problems } = checked(schema, input, 'config')
  if (!problems) return output
  // A configuration with problems is parsed again, so that the problems of all fields are in one error.
  const all = byDefault.length > 0 ? checked(configWith(byDefault), input, 'config').problems : []
  throw new ConfigError((all?.length ? all : problems).map((problem) => inContext(problem, input)))
}

/** Adds the name of the policy or list entry, and hides a value that may be a secret. */
function inContext(problem: ConfigProblem, input: unknown): ConfigProblem {
  const [, list, index, field] =
    /^(policies|allow|deny)(?:\[(\d+)\])?\.?(.*)/.exec(problem.path) ?? []
  const entries = list && (input as Record<string, unknown>)[list]
  const { name } = Object(index && Array.isArray(entries) ? entries[Number(index)] : entries)
  return {
    ...withoutSecret(problem),
    ...(typeof name === 'string' && field !== 'name' && { within: shortened(name) }),
  }
}
