import type * as v from 'valibot'
import { ConfigError, type ConfigProblem } from '../base/errors.ts'
import type { FeatureDeclaration } from './feature.ts'
import { checkNeeds } from './needs.ts'
import { checked, problemAt, shortened, withoutSecret } from './schema/checked.ts'
import { type Config, type ConfigOptions, config } from './schema/config.ts'
import { liveDocument } from './schema/live.ts'
import type { AddProblem } from './schema/shapes.ts'

export type { Config, ListEntry } from './schema/config.ts'
export type { Policy } from './schema/policy.ts'

/**
 * Checks a configuration and returns it, with types. Freezes it: copy it to change it.
 * @throws {ConfigError} lists every problem: path, expected, got
 * @example
 * export default defineConfig({
 *   origin: 'https://origin.example.com',
 *   policies: [{ name: 'per-ip', limit: 100, window: '1m' }],
 * })
 */
export function defineConfig<Context = unknown>(
  options: ConfigOptions<Context>,
): ConfigOptions<Context> {
  parseConfig(options)
  return options
}

/** The parsed configurations: `defineConfig` and the limiter get the same object. It is frozen, so that no later change is ignored. */
const known = new WeakMap<object, Config>()

/**
 * Parses untrusted input into a configuration. The same object is parsed once, and frozen.
 * @throws {ConfigError} lists every problem: path, expected, got
 */
export function parseConfig(options: unknown): Config {
  const isObject = typeof options === 'object' && options !== null
  const parsed = (isObject && known.get(options)) || parse(config, options)
  if (isObject) known.set(options, parsed)
  freeze(options)
  return parsed
}

/** Freezes plain objects and lists, so that a later change is an error instead of ignored. */
function freeze(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return
  if (!Array.isArray(value) && Object.getPrototypeOf(value) !== Object.prototype) return
  Object.freeze(value)
  for (const part of Object.values(value)) freeze(part)
}

/**
 * Parses a live document together with the configuration whose fields it replaces.
 * @throws {ConfigError} lists every problem: path, expected, got
 */
export function parseLive(input: unknown, options: object): Config {
  const fields = Object.entries(parse(liveDocument, input))
  return parseConfig({
    ...options,
    ...Object.fromEntries(fields.filter(([, value]) => value !== undefined)),
  })
}

/**
 * Checks a parsed configuration with the features that its host has besides those of `use`.
 * @param options the object that the configuration was parsed from
 * @throws {ConfigError} if a field needs another feature, or a feature of the host finds a problem
 */
export function checkFeatures(
  config: Config,
  options: object,
  features: readonly FeatureDeclaration[],
): void {
  const problems: ConfigProblem[] = []
  const add: AddProblem = (path, expected) => problems.push(problemIn(options, path, expected))
  const names = features.map(({ name }) => name)
  checkNeeds(config, names, add)
  for (const one of features) if (!config.use.includes(one)) one.check?.(config, add)
  if (problems.length > 0) throw new ConfigError(problems)
}

/** A problem of a part of a configuration, in the context of its policy. */
export const problemIn = (
  options: object,
  path: readonly (string | number)[],
  expected: string,
): ConfigProblem => inContext(problemAt(options, path, expected, 'config'), options)

function parse<T>(schema: v.GenericSchema<unknown, T>, input: unknown): T {
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
