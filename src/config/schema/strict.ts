/**
 * What the shapes of bodies are made of. They are valibot's own to whoever reads them (a generator of JSON Schema), but checked
 * in an order of our own: one problem a place, each unknown field told, and little work for what is far too much.
 */
import * as v from 'valibot'

/** So many problems of a body are told, at most. */
export const MAX_PROBLEMS = 20

/** A schema, whatever is wrong with it told by one text: what was expected. */
export const says = <S extends v.GenericSchema>(expected: string, schema: S): S => ({
  ...schema,
  '~run': (dataset, config) =>
    schema['~run'](dataset, { ...config, abortPipeEarly: true, message: expected }),
})

/** A text of these lengths; `regex` has no flags, as in JSON Schema. */
export function text(expected: string, least: number, most: number, regex?: RegExp) {
  const sized = v.pipe(v.string(), v.minLength(least), v.maxLength(most))
  return says(expected, regex ? (v.pipe(sized, v.regex(regex)) as unknown as typeof sized) : sized)
}

/** A whole number, both ends included. */
export const wholeFrom = (low: number, high: number, expected = `from ${low} to ${high}`) =>
  says(
    `a whole number ${expected}`,
    v.pipe(v.number(), v.integer(), v.minValue(low), v.maxValue(high)),
  )

const isObject = (input: unknown): input is Record<string, unknown> =>
  typeof input === 'object' && input !== null && !Array.isArray(input)
const noObject = v.custom(isObject, 'an object')

/**
 * An object with these fields and no others: each unknown field is a problem of its own.
 * @param refused texts for fields that are known, and out of place here
 */
export function fields<const E extends v.ObjectEntries>(
  entries: E,
  refused: Record<string, string> = {},
): v.StrictObjectSchema<E, undefined> {
  const names = Object.keys(entries)
  const required = names.filter((name) => entries[name]!.type !== 'optional')
  const blank = Object.fromEntries(required.map((name) => [name, undefined])) // so that a missing field is told by its own text
  const unknown = `one of the fields ${names.join(', ')}`
  const known = v.object(entries)
  return {
    ...v.strictObject(entries),
    '~run'(dataset, config) {
      const { value } = dataset
      if (!isObject(value)) return noObject['~run'](dataset, config) as never
      const others = Object.keys(value).filter((name) => !names.includes(name))
      const nothing = others
        .slice(0, MAX_PROBLEMS)
        .map((name): [string, v.GenericSchema] => [
          name,
          v.never(Object.hasOwn(refused, name) ? refused[name] : unknown),
        ])
      const shape =
        others.length > 0 ? v.object({ ...entries, ...Object.fromEntries(nothing) }) : known
      return shape['~run']({ value: { ...blank, ...value } }, config) as never
    },
  }
}

/** A list of 1 to `most`. */
export function listOf<const S extends v.GenericSchema>(item: S, most: number, what: string) {
  const items = v.pipe(v.array(item), v.minLength(1), v.maxLength(most))
  const fits = (input: unknown) => Array.isArray(input) && input.length >= 1 && input.length <= most
  return first(fits, `1 to ${most} ${what}`, items)
}

/** Names and values, up to `most` of them. */
export function entriesOf<
  const K extends v.GenericSchema<string, string>,
  const S extends v.GenericSchema,
>(name: K, value: S, most: number, what: string) {
  const entries = v.pipe(v.record(name, value), v.maxEntries(most))
  const fits = (input: unknown) => isObject(input) && Object.keys(input).length <= most
  return first(fits, `an object of up to ${most} ${what}`, entries)
}

/** Looks no further where the whole does not fit. */
function first<S extends v.GenericSchema>(
  fits: (input: unknown) => boolean,
  expected: string,
  schema: S,
): S {
  const whole = v.custom(fits, expected)
  return {
    ...schema,
    '~run': (dataset, config) =>
      fits(dataset.value)
        ? schema['~run'](dataset, config)
        : (whole['~run'](dataset, config) as ReturnType<S['~run']>),
  }
}

/** One of two, of which the input says by itself which is meant: problems have the paths of that one. */
export const either = <const A extends v.GenericSchema, const B extends v.GenericSchema>(
  isSecond: (input: unknown) => boolean,
  one: A,
  other: B,
): v.UnionSchema<[A, B], undefined> => ({
  ...v.union([one, other]),
  '~run': (dataset, config) =>
    (isSecond(dataset.value) ? other : one)['~run'](dataset, config) as never,
})

/** Whether an object has one field, and not another. */
export const hasOnly = (field: string, not: string) => (input: unknown) =>
  isObject(input) && Object.hasOwn(input, field) && !Object.hasOwn(input, not)
