/** Reads the bodies of calls. It loads no library, since each Worker with the API has it. */
import { isObject } from '../core/base/json.ts'
import { MAX_UNITS } from '../core/base/units.ts'
import { type Checked, problemAt } from '../core/config/schema/checked.ts'

type Path = readonly (string | number)[]

/** Reports what a part of a body must be. `isKey`: the problem is the name of the part. */
type Report = (path: Path, expected: string, isKey?: boolean) => void

/** Returns the value of a part of a body, and reports its problems. */
export type Shape<T> = (input: unknown, report: Report, path: Path) => T

export type Shapes = Record<string, Shape<unknown>>

/** The value of an object with these fields. */
export type Fields<F extends Shapes> = {
  [K in keyof F as undefined extends ReturnType<F[K]> ? never : K]: ReturnType<F[K]>
} & { [K in keyof F as undefined extends ReturnType<F[K]> ? K : never]?: ReturnType<F[K]> }

/** The maximum number of reported errors of one body. */
export const MAX_PROBLEMS = 20

/** Reads a body: its value, or the first of its problems. */
export function checkedBody<T>(shape: Shape<T>, body: unknown): Checked<T> {
  const found: Parameters<Report>[] = []
  const output = shape(body, (...problem) => void found.push(problem), [])
  if (found.length === 0) return { output }
  const first = found.slice(0, MAX_PROBLEMS)
  return {
    problems: first.map(([path, expected, isKey]) =>
      problemAt(body, path, expected, 'body', isKey),
    ),
  }
}

export const fits =
  <T>(expected: string, test: (input: T) => boolean): Shape<T> =>
  (input, report, path) => {
    if (!test(input as T)) report(path, expected)
    return input as T
  }

export const text = (
  expected: string,
  pattern: RegExp,
  test = (_: string) => true,
): Shape<string> =>
  fits(expected, (input) => typeof input === 'string' && pattern.test(input) && test(input))

export const oneOf = <T extends string>(...values: T[]): Shape<T> =>
  fits(values.join(' or '), (input: T) => values.includes(input))

/** A whole number from `low` to `high`, both included. */
export const whole =
  (low: number, high = MAX_UNITS, kind = `of at least ${low}`): Shape<number> =>
  (input, report, path) => {
    const number = input as number
    if (Number.isInteger(number) && number >= low && number <= high) return number
    const isHigh = high >= MAX_UNITS && Number.isInteger(number) && number > high
    report(path, `a whole number ${isHigh ? `of at most ${high}` : kind}`)
    return number
  }

export const optional =
  <T>(shape: Shape<T>): Shape<T | undefined> =>
  (input, ...rest) =>
    input === undefined ? undefined : shape(input, ...rest)

/** One of two shapes, chosen by the input. Only the problems of the chosen one are reported. */
export const either =
  <A, B>(isSecond: (input: unknown) => boolean, one: Shape<A>, other: Shape<B>): Shape<A | B> =>
  (input, ...rest) =>
    (isSecond(input) ? other : one)(input, ...rest)

export const listOf =
  <T>(item: Shape<T>, most: number, expected: string, least = 1): Shape<T[]> =>
  (input, report, path) => {
    if (Array.isArray(input) && input.length >= least && input.length <= most)
      return input.map((one, index) => item(one, report, [...path, index]))
    report(path, expected)
    return []
  }

/** An object with these fields. @param misplaced messages for fields that are valid in another place. `null`: other fields are kept */
export const object =
  <F extends Shapes>(
    fields: F,
    misplaced: Record<string, string> | null = {},
    expected = 'an object',
  ): Shape<Fields<F>> =>
  (input, report, path) => {
    const output: Record<string, unknown> = misplaced ? {} : { ...(input as object) }
    if (!isObject(input)) report(path, expected)
    else {
      const names = Object.keys(fields)
      for (const name of names) output[name] = fields[name]!(input[name], report, [...path, name])
      const others = Object.keys(input).filter((name) => misplaced && !names.includes(name))
      const known = `one of the fields ${names.join(', ')}`
      for (const name of others.slice(0, MAX_PROBLEMS))
        report([...path, name], Object.hasOwn(misplaced!, name) ? misplaced![name]! : known)
    }
    return output as Fields<F>
  }
