import type * as v from 'valibot'
import { ConfigError, type ConfigProblem, shortened } from '../base/errors.ts'
import type { FeatureFields } from './feature.ts'
import { checked, problemAt, withoutSecret } from './schema/checked.ts'
import { type Config, configWith } from './schema/config.ts'

export type { Config, ListEntry } from './schema/config.ts'
export type { Policy } from './schema/policy.ts'

/** Finds the fields that need something which a host lacks. */
export type Lack = (options: object, config: Config) => ConfigProblem[]

/**
 * Parses untrusted input into a configuration. The input is frozen, so that no later change is ignored.
 * @param byDefault the features that the host has besides those of `use`. Without a feature, its fields are accepted as they are
 * @param lacks what the host lacks. Defaults to nothing
 * @throws {ConfigError} lists every problem: path, expected, got. Also if a field needs another feature or another host
 */
export function parseConfig(
  options: unknown,
  byDefault: readonly FeatureFields[] = [],
  lacks: readonly Lack[] = [],
): Config {
  const parsed = parse(configWith(byDefault), options)
  freeze(options)
  const problems = lacks.flatMap((lack) => lack(options as object, parsed))
  if (problems.length > 0) throw new ConfigError(problems)
  return parsed
}

/** Freezes plain objects and lists, so that a later change is an error instead of ignored. */
function freeze(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return
  if (!Array.isArray(value) && Object.getPrototypeOf(value) !== Object.prototype) return
  Object.freeze(value)
  for (const part of Object.values(value)) freeze(part)
}

/** A problem of a part of a configuration, in the context of its policy. */
export const problemIn = (
  options: object,
  path: readonly (string | number)[],
  expected: string,
): ConfigProblem => inContext(problemAt(options, path, expected, 'config'), options)

/**
 * Parses input with a schema.
 * @throws {ConfigError} lists every problem
 */
export function parse<T>(schema: v.GenericSchema<unknown, T>, input: unknown): T {
  const { output, problems } = checked(schema, input, 'config')
  if (problems) throw new ConfigError(problems.map((problem) => inContext(problem, input)))
  return output
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
