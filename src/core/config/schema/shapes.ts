/** Building blocks of the schemas of configurations. Each message describes the expected values. */
import * as v from 'valibot'
import { type Duration, parseDuration } from '../../base/duration.ts'
import { isObject } from '../../base/json.ts'
import { MAX_UNITS } from '../../base/units.ts'
import type { FindingCode } from '../findings.ts'

/** The input type of an object with these entries, inferred so that an editor shows their documentation (not that of TypeScript 7.0). */
export type Input<E extends v.ObjectEntries> = {
  [K in keyof E as E[K] extends { readonly type: 'optional' } ? never : K]: v.InferInput<E[K]>
} & {
  [K in keyof E as E[K] extends { readonly type: 'optional' } ? K : never]?: v.InferInput<E[K]>
}

/** The output type of an object with these entries. A field that is left out is `undefined`. */
export type Output<E extends v.ObjectEntries> = { [K in keyof E]: v.InferOutput<E[K]> }

/** An empty second base for interfaces that only name an input. With a single base, TypeScript would show the name of the base instead. */
export type Named = Record<never, never>

/** Names the input type of a schema. Hover texts and type errors then show the name instead of every field. */
export const named =
  <I>() =>
  <O>(schema: v.GenericSchema<I, O>) =>
    schema

export const pattern = <T extends string = string>(
  expected: string,
  regex: RegExp,
): v.GenericSchema<T, T> =>
  v.custom<T>((input) => typeof input === 'string' && regex.test(input), expected)

export const oneOf = <const T extends string>(...values: T[]): v.GenericSchema<T, T> =>
  v.picklist(values, `one of ${values.join(', ')}`)

/** A whole number from `low` to `high`, both included. */
export const whole = (
  low: number,
  high = MAX_UNITS,
  expected = high >= MAX_UNITS ? `of at least ${low}` : `from ${low} to ${high}`,
): v.GenericSchema<number, number> =>
  v.config(
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(low),
      v.maxValue(high, high >= MAX_UNITS ? `a whole number of at most ${high}` : undefined),
    ),
    { abortPipeEarly: true, message: `a whole number ${expected}` },
  )

/** Units of a limit. The algorithm may bound them further (`largestQuota`). */
export const units = whole(1, Number.MAX_SAFE_INTEGER)

export const flag: v.GenericSchema<boolean, boolean> = v.boolean('true or false')

/** The name of a policy or a list entry. Headers and log lines contain it. */
export const name = pattern(
  'a name of up to 64 letters, digits, "_", "." or "-", starting with a letter or digit',
  /^[A-Za-z0-9][\w.-]{0,63}$/,
)

export const duration: v.GenericSchema<Duration, number> = v.pipe(
  v.custom<Duration>(
    (input) => parseDuration(input) !== undefined,
    'a duration like "10s", or whole milliseconds',
  ),
  v.transform((input) => parseDuration(input)!),
)

/** The longest timer of the platform, ms. A longer one fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

export const timeout: v.GenericSchema<Duration, number> = v.pipe(
  duration,
  v.maxValue(LONGEST_TIMER_MS, 'a duration of less than 25 days'),
)

/** One value or a list of values. Parses to a list. */
export const list = <I, O>(
  schema: v.GenericSchema<I, O>,
  least = 1,
): v.GenericSchema<I | I[], O[]> =>
  v.pipe(
    v.custom<I | I[]>(() => true),
    v.transform((input) => (Array.isArray(input) ? input : [input])),
    v.array(schema),
    v.minLength<O[], number, string>(least, 'at least one value'),
  )

/** Codes of findings. The linter itself reports unknown ones, so that the Worker's bundle does not contain the codes. */
export const accept: v.OptionalSchema<
  v.GenericSchema<FindingCode | FindingCode[], FindingCode[]>,
  readonly []
> = v.optional(
  list(
    v.custom<FindingCode>((input) => typeof input === 'string', 'a code like "no-origin"'),
    0,
  ),
  [],
)

/** A schema that the JSON Schema generator (tools/openapi), which supports only valibot's own kinds, reads as the result of `shape`. */
const described = <I, O>(
  schema: v.GenericSchema<I, O>,
  shape: () => unknown,
): v.GenericSchema<I, O> => Object.assign(schema, { shape })

/** Reports a problem of a field, of a value in it, or of its name. */
export type AddProblem = (path: (string | number)[], expected: string, isKey?: boolean) => void

/**
 * An object with exactly these fields, which are built when the first value needs them. Each unknown field is a problem of its own.
 * @param relations checks fields against each other. `valid` has the fields without problems, `all` has every field.
 */
export function object<const E extends v.ObjectEntries>(
  fields: () => E,
  relations?: (
    valid: Partial<Output<E>>,
    problem: AddProblem,
    all: Record<string, unknown>,
  ) => void,
): v.GenericSchema<Input<E>, Output<E>> {
  let made: E | undefined
  const entriesOf = () => (made ??= fields())
  const schema = v.pipe(
    v.custom<Record<string, unknown>>(isObject, 'an object'),
    v.rawTransform(({ dataset, config, addIssue }) => {
      const input = dataset.value
      const settings = config as v.Config<v.BaseIssue<unknown>>
      const item = { type: 'unknown', input, value: undefined } as const
      const itemOf = (key: unknown, isKey = false): v.UnknownPathItem => ({
        ...item,
        origin: isKey ? 'key' : 'value',
        key,
      })
      const report: AddProblem = (path, message, isKey) => {
        const [first, ...rest] = path.map((key) => itemOf(key, isKey))
        addIssue({ message, path: [first!, ...rest] })
      }
      const entries = entriesOf()
      const all: Record<string, unknown> = {}
      const valid: Record<string, unknown> = {}
      for (const [name, entry] of Object.entries(entries)) {
        const { output, issues } = v.safeParse(entry, input[name], settings)
        all[name] = output
        if (!issues) valid[name] = output
        for (const { message, path = [] } of issues ?? [])
          addIssue({ message, path: [itemOf(name), ...path] })
      }
      const known = `one of the fields ${Object.keys(entries).join(', ')}`
      for (const name of Object.keys(input))
        if (!Object.hasOwn(entries, name)) report([name], known)
      relations?.(valid as Partial<Output<E>>, report, all)
      dataset.value = all // also with problems: other parts are compared with the fields that are valid
      return all as Output<E>
    }),
  )
  return described(schema as v.GenericSchema, entriesOf) as never
}

/** One of two schemas, chosen by the input. Only the problems of the chosen schema are reported. */
export const either = <A, P, B, Q>(
  isSecond: (input: unknown) => boolean,
  one: v.GenericSchema<A, P>,
  other: v.GenericSchema<B, Q>,
) =>
  described(
    v.lazy((input): v.GenericSchema<A | B, P | Q> => (isSecond(input) ? other : one)),
    () => [one, other],
  )
