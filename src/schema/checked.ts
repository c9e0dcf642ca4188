import * as v from 'valibot'
import type { ConfigProblem } from '../errors.ts'

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
    problems: result.issues.slice(0, most).map((issue) => ({
      path: pathOf(issue.path ?? []) || whole,
      expected: issue.message,
      got: show(found(issue)),
    })),
  }
}

function found({ path, input }: v.BaseIssue<unknown>): unknown {
  const last = path?.at(-1)
  if (!last) return input
  return last.origin === 'key' ? last.key : last.value
}

/** As one would write it in code. */
const pathOf = (path: readonly { key?: unknown }[]) =>
  path
    .map(({ key }) => (/^\d+$/.test(String(key)) ? `[${key}]` : `.${shortened(String(key))}`))
    .join('')
    .replace(/^\./, '')

/** A value in at most 60 characters of it. */
export function show(value: unknown): string {
  if (value === undefined) return 'nothing'
  const text = typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? typeof value)
  return shortened(text)
}

const shortened = (text: string) => (text.length > 60 ? `${text.slice(0, 60)}…` : text)
