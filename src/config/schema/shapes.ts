/** What schemas are made of, for configurations and for bodies of the decision API. Each message is the text of what is expected. */
import * as v from 'valibot'
import { type Duration, parseDuration } from '../../base/duration.ts'
import { findingCodes } from '../findings.ts'

export const MAX_UNITS = 2 ** 51

interface Optional {
  readonly type: 'optional'
}

/**
 * What is written for an object of these entries. The types are inferred, since an editor shows each field with the documentation and
 * the type of its entry, and a wrong literal fails as with types by hand. (The language server of TypeScript 7.0 drops the
 * documentation of mapped types; 5.9 and 7.1 show it.)
 */
export type Input<E extends v.ObjectEntries> = {
  [K in keyof E as E[K] extends Optional ? never : K]: v.InferInput<E[K]>
} & { [K in keyof E as E[K] extends Optional ? K : never]?: v.InferInput<E[K]> }

/** What an object of these entries parses to. A field that was left out is `undefined`. */
export type Output<E extends v.ObjectEntries> = { [K in keyof E]: v.InferOutput<E[K]> }

/** A second base for interfaces that only name an input: TypeScript shows the base of an interface that has one base and adds nothing. */
export type Named = Record<never, never>

/** Gives the input of a schema a name, which hover texts and errors then show in place of every field. */
export const named =
  <I>() =>
  <O>(schema: v.GenericSchema<I, O>) =>
    schema

/** A schema with one message, whatever is wrong. */
export const says = <S extends v.GenericSchema>(expected: string, schema: S): S =>
  v.config(schema, { abortPipeEarly: true, message: expected })

export const pattern = <T extends string = string>(expected: string, regex: RegExp) =>
  v.custom<T>((input) => typeof input === 'string' && regex.test(input), expected)

/** A text of these lengths; `regex` has no flags, as in JSON Schema. */
export function text(expected: string, least: number, most: number, regex?: RegExp) {
  const sized = v.pipe(v.string(), v.minLength(least), v.maxLength(most))
  return says(expected, regex ? (v.pipe(sized, v.regex(regex)) as unknown as typeof sized) : sized)
}

export const oneOf = <const T extends string>(...values: T[]) =>
  v.picklist(values, `one of ${values.join(', ')}`)

/** A whole number, both ends included. */
export const whole = (
  low: number,
  high = MAX_UNITS,
  expected = high === MAX_UNITS ? `of at least ${low}` : `from ${low} to ${high}`,
) =>
  says(
    `a whole number ${expected}`,
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(low),
      v.maxValue(high, high === MAX_UNITS ? `a whole number of at most ${high}` : undefined),
    ),
  )

export const flag = v.boolean('true or false')

/** Of policies and of entries in lists: they stand in header fields and logs. */
export const name = pattern(
  'up to 64 letters, digits, "_", "." or "-"',
  /^[A-Za-z0-9][\w.-]{0,63}$/,
)

export const duration = v.pipe(
  v.custom<Duration>(
    (input) => parseDuration(input) !== undefined,
    'a duration like "10s", or whole milliseconds',
  ),
  v.transform((input) => parseDuration(input)!),
)

/** A timer of the platform that is longer than this fires at once, ms. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** How long something is waited for. */
export const timeout = v.pipe(
  duration,
  v.maxValue(LONGEST_TIMER_MS, 'a duration of less than 25 days'),
)

/** One value or a list of them; always a list when parsed. */
export const list = <I, O>(schema: v.GenericSchema<I, O>, least = 1) =>
  v.pipe(
    v.custom<I | I[]>(() => true),
    v.transform((input) => (Array.isArray(input) ? input : [input])),
    v.array(schema),
    v.minLength<O[], number, string>(least, 'at least one'),
  )

export const accept = v.optional(list(oneOf(...findingCodes), 0), [])

/**
 * A schema that the generator of JSON Schema (dev/openapi) reads as another: `shape` is made of valibot's own kinds, which it knows.
 */
const described = <I, O>(
  schema: v.GenericSchema<I, O>,
  shape: v.GenericSchema,
): v.GenericSchema<I, O> => v.pipe(schema, v.metadata({ shape }))

export const isObject = (input: unknown): input is Record<string, unknown> =>
  typeof input === 'object' && input !== null && !Array.isArray(input)

/** The most unknown fields of one object that are reported: a hostile body has thousands. */
const MAX_UNKNOWN = 20

/** Reports a problem of a field, or of something in it. */
export type AddProblem = (path: (string | number)[], expected: string) => void

/**
 * An object with these fields and no others: each unknown field is a problem of its own.
 * @param relations checks fields against each other. `valid` has those without a problem of their own, `all` has every field.
 * @param misplaced texts for unknown fields that are known elsewhere
 */
export function object<const E extends v.ObjectEntries>(
  entries: E,
  relations?: (
    valid: Partial<Output<E>>,
    problem: AddProblem,
    all: Record<string, unknown>,
  ) => void,
  misplaced: Record<string, string> = {},
): v.GenericSchema<Input<E>, Output<E>> {
  const names = Object.keys(entries)
  const blank = Object.fromEntries(names.map((name) => [name, undefined]))
  const known = v.object(entries)
  const unknown = v.never(`one of the fields ${names.join(', ')}`)
  const withUnknown = (input: unknown) => {
    const others = Object.keys(input as object).filter((name) => !names.includes(name))
    if (others.length === 0) return known
    const refused = others
      .slice(0, MAX_UNKNOWN)
      .map((name): [string, v.GenericSchema] => [
        name,
        Object.hasOwn(misplaced, name) ? v.never(misplaced[name]) : unknown,
      ])
    return v.object({ ...entries, ...Object.fromEntries(refused) })
  }
  const schema = v.pipe(
    v.custom<object>(isObject, 'an object'),
    v.transform((input) => ({ ...blank, ...input })), // A missing field then fails with its own text.
    v.lazy(withUnknown),
    v.rawCheck<object>(({ dataset, addIssue }) => {
      const { value, issues } = dataset
      if (!relations || !isObject(value)) return
      const wrong = new Set(issues?.map(({ path }) => path?.[0].key))
      const valid = Object.entries(value).filter(([name]) => !wrong.has(name))
      const item = { type: 'unknown', origin: 'value', input: value, value: undefined } as const
      relations(
        Object.fromEntries(valid) as Partial<Output<E>>,
        (path, message) =>
          addIssue({ message, path: path.map((key) => ({ ...item, key })) as [v.UnknownPathItem] }),
        value,
      )
    }),
  )
  return described(schema as v.GenericSchema, v.strictObject(entries)) as never
}

/** One of two schemas, chosen by the input: problems are those of that one. */
export const either = <A, P, B, Q>(
  isSecond: (input: unknown) => boolean,
  one: v.GenericSchema<A, P>,
  other: v.GenericSchema<B, Q>,
) =>
  described(
    v.lazy((input): v.GenericSchema<A | B, P | Q> => (isSecond(input) ? other : one)),
    v.union([one, other]),
  )

/** Looks no further where the whole does not fit. */
export const first = <I, O>(
  fits: (input: unknown) => boolean,
  expected: string,
  schema: v.GenericSchema<I, O>,
) => described(v.pipe(v.custom<I>(fits, expected), schema), schema)

/** A list of 1 to `most`. */
export const listOf = <I, O>(item: v.GenericSchema<I, O>, most: number, what: string) =>
  first(
    (input) => Array.isArray(input) && input.length >= 1 && input.length <= most,
    `1 to ${most} ${what}`,
    v.pipe(v.array(item), v.minLength(1), v.maxLength(most)),
  )
