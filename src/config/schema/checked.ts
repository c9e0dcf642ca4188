import * as v from 'valibot'
import type { ConfigProblem } from '../../base/errors.ts'

/** What turns an input into a `T`. */
export type Schema<T> = v.GenericSchema<unknown, T>

/** What a schema makes of an input, or all that is wrong with it. */
export type Checked<T> =
  | { output: T; problems?: undefined }
  | { output?: undefined; problems: ConfigProblem[] }

/**
 * Runs a schema. Its messages are the texts of what is expected.
 * @param whole what the input itself is called in a path
 * @param most how many problems are told, at most
 */
export function checked<T>(
  shape: Schema<T>,
  input: unknown,
  whole: string,
  most = Number.POSITIVE_INFINITY,
): Checked<T> {
  const result = v.safeParse(shape, input)
  if (result.success) return { output: result.output }
  return {
    problems: result.issues.slice(0, most).map(({ path = [], message }) => {
      const { keys, value } = written(input, path)
      return {
        path: pathOf(keys) || whole,
        expected: message,
        got: show(path.at(-1)?.origin === 'key' ? keys.at(-1) : value),
      }
    }),
  }
}

/** Follows the path of an issue through the input as written, where a single value may stand for a list of one. */
function written(input: unknown, path: readonly { key?: unknown }[]) {
  const keys: string[] = []
  let value = input
  for (const key of path.map(({ key }) => String(key))) {
    const there = typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    if (!there && /^\d+$/.test(key) && !Array.isArray(value)) continue
    value = there ? (value as Record<string, unknown>)[key] : undefined
    keys.push(key)
  }
  return { keys, value }
}

/** As one would write it in code. */
const pathOf = (keys: string[]) =>
  keys
    .map((key) => (/^\d+$/.test(key) ? `[${key}]` : `.${shortened(key)}`))
    .join('')
    .replace(/^\./, '')

/** A value in at most 60 characters of it. */
export function show(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (/^(number|bigint)$/.test(typeof value) || value instanceof RegExp)
    return shortened(String(value))
  try {
    return shortened(JSON.stringify(value) ?? typeof value)
  } catch {
    return typeof value // such as an object that holds itself
  }
}

export const shortened = (text: string) => (text.length > 60 ? `${text.slice(0, 60)}…` : text)
