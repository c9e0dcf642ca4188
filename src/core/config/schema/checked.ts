import * as v from 'valibot'
import { ConfigError, type ConfigProblem, shortened, show } from '../../base/errors.ts'

export type Schema<T> = v.GenericSchema<unknown, T>

export type Checked<T> =
  | { output: T; problems?: undefined }
  | { output?: undefined; problems: ConfigProblem[] }

/**
 * Runs a schema, whose messages describe the expected values.
 * @param whole path of a problem that concerns the whole input
 */
export function checked<T>(shape: Schema<T>, input: unknown, whole: string): Checked<T> {
  const result = v.safeParse(shape, input)
  if (result.success) return { output: result.output }
  return {
    problems: result.issues.map(({ path = [], message }) => {
      const keys = path.map(({ key }) => key)
      return problemAt(input, keys, message, whole, path.at(-1)?.origin === 'key')
    }),
  }
}

/** Parses the options of a function, `name`. @throws {ConfigError} with every problem */
export function parsedOptions<T>(shape: Schema<T>, options: unknown, name: string): T {
  const { output, problems } = checked(shape, options, name)
  if (problems) throw new ConfigError(problems)
  return output
}

/** A problem of a part of the input, or of the name of a field. */
export function problemAt(
  input: unknown,
  path: readonly unknown[],
  expected: string,
  whole: string,
  isKey = false,
): ConfigProblem {
  const { keys, value } = written(input, path)
  return { path: pathOf(keys) || whole, expected, got: show(isKey ? keys.at(-1) : value) }
}

/** Follows the path of an issue through the input as written, where a single value is allowed in place of a list of one. */
function written(input: unknown, path: readonly unknown[]) {
  const keys: string[] = []
  let value = input
  for (const key of path.map(String)) {
    const isPresent = typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    if (!isPresent && /^\d+$/.test(key) && !Array.isArray(value)) continue
    value = isPresent ? (value as Record<string, unknown>)[key] : undefined
    keys.push(key)
  }
  return { keys, value }
}

const pathOf = (keys: string[]) =>
  keys
    .map((key) => (/^\d+$/.test(key) ? `[${key}]` : `.${shortened(key)}`))
    .join('')
    .replace(/^\./, '')

/** Matches problems, as "path expected", of fields that may contain a secret by mistake. */
const CREDENTIAL = /^((jwt|apiKeys)(?!\.(algorithms|from|issuer|audience|jwks))\b|.*SHA-256)/

/** Hides the value of a problem if it may be a secret, written in place of the name of its variable. */
export const withoutSecret = (problem: ConfigProblem): ConfigProblem =>
  problem.got !== 'nothing' && CREDENTIAL.test(`${problem.path} ${problem.expected}`)
    ? { ...problem, got: 'a value that may be secret' }
    : problem
