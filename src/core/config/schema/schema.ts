/**
 * Schemas: each checks and parses unknown input. They have the shape of valibot's, so that its converter to JSON Schema reads them, and no
 * more than Sluice needs. Each message describes the expected value.
 */

interface PathItem {
  key: unknown
  /** `key` if the problem is the name of the field. */
  origin: 'key' | 'value'
}

/** A problem of the input, or of a part of it. */
export interface Issue {
  message: string
  path?: PathItem[] | undefined
}

/** A value on its way through a schema. */
interface Dataset {
  value: unknown
  /** False after a problem of its type: then it is not checked further. */
  typed?: boolean
  issues?: Issue[]
}

interface Settings {
  /** The message of problems that have none. */
  message?: string
  /** True if a value is not checked further after any problem. */
  abortPipeEarly?: boolean
}

/** A part of a pipe. `~types` exists in types only. */
export interface Step<I = unknown, O = I> {
  readonly kind: 'schema' | 'validation' | 'transformation'
  readonly type: string
  readonly '~types'?: { readonly input: I; readonly output: O } | undefined
  '~run'(dataset: Dataset, settings: Settings): Dataset
}

/** A schema that takes an `I` and parses it to an `O`. */
export interface GenericSchema<I = unknown, O = I> extends Step<I, O> {
  readonly kind: 'schema'
}

/** A field that may be left out. */
export interface OptionalSchema<I, O> extends GenericSchema<I, O> {
  readonly type: 'optional'
}

export type ObjectEntries = Readonly<Record<string, GenericSchema>>
export type InferInput<S> = S extends GenericSchema<infer I, unknown> ? I : never
export type InferOutput<S> = S extends GenericSchema<unknown, infer O> ? O : never

/** The message of a schema that has none. */
const OTHER = 'another value'

function fail(step: Step, dataset: Dataset, issue: Issue): Dataset {
  if (step.kind === 'schema') dataset.typed = false
  dataset.issues = [...(dataset.issues ?? []), issue]
  return dataset
}

/** A schema or a validation that accepts the values that pass a test. */
const testing = <S extends Step>(
  kind: S['kind'],
  type: S['type'],
  isValid: (value: never) => boolean,
  message?: string,
  own?: object,
) =>
  ({
    ...own,
    kind,
    type,
    '~run'(dataset, settings) {
      if (kind === 'schema') dataset.typed = true
      if (!dataset.typed || isValid(dataset.value as never)) return dataset
      return fail(this, dataset, { message: message ?? settings.message ?? OTHER })
    },
  }) as Step as S

export const custom = <T>(isValid: (input: unknown) => boolean, message?: string) =>
  testing<GenericSchema<T>>('schema', 'custom', isValid, message)

export const unknown = () => testing<GenericSchema>('schema', 'unknown', () => true)

/** Values for which `typeof` is the type. */
const ofType =
  <T>(type: string) =>
  (message?: string) =>
    testing<GenericSchema<T>>('schema', type, (input) => typeof input === type, message)

export const string = ofType<string>('string')
export const boolean = ofType<boolean>('boolean')

export const number = (message?: string) =>
  testing<GenericSchema<number>>(
    'schema',
    'number',
    (input) => typeof input === 'number' && !Number.isNaN(input),
    message,
  )

export const literal = <const T extends string | number | true>(literal: T, message?: string) =>
  testing<GenericSchema<T>>('schema', 'literal', (input) => input === literal, message, { literal })

export const picklist = <const T extends string>(options: readonly T[], message?: string) =>
  testing<GenericSchema<T>>('schema', 'picklist', (input: T) => options.includes(input), message, {
    options,
  })

const schema = <I, O>(type: string, own: object, run: Step['~run']): GenericSchema<I, O> => ({
  ...own,
  kind: 'schema',
  type,
  '~run': run,
})

export const nullable = <I, O>(wrapped: GenericSchema<I, O>): GenericSchema<I | null, O | null> =>
  schema('nullable', { wrapped }, (dataset, settings) =>
    dataset.value === null ? { value: null, typed: true } : wrapped['~run'](dataset, settings),
  )

export const check = <T>(isValid: (value: T) => boolean, message?: string) =>
  testing<Step<T>>('validation', 'check', isValid, message)

/** A validation with a bound or an expression as its `requirement`. */
const bounded =
  <V, R>(type: string, isValid: (value: V, requirement: R) => boolean) =>
  <T extends V>(requirement: R, message?: string) =>
    testing<Step<T>>('validation', type, (value: V) => isValid(value, requirement), message, {
      requirement,
    })

interface WithLength {
  length: number
}
export const minValue = bounded<number, number>('min_value', (value, least) => value >= least)
export const maxValue = bounded<number, number>('max_value', (value, most) => value <= most)
export const minLength = bounded<WithLength, number>(
  'min_length',
  ({ length }, least) => length >= least,
)
export const maxLength = bounded<WithLength, number>(
  'max_length',
  ({ length }, most) => length <= most,
)
export const regex = bounded<string, RegExp>('regex', (value, pattern) => pattern.test(value))
export const maxEntries = bounded<object, number>(
  'max_entries',
  (value, most) => Object.keys(value).length <= most,
)
export const integer = (message?: string) =>
  testing<Step<number>>('validation', 'integer', Number.isInteger, message)

export const transform = <I, O>(operation: (value: I) => O): Step<I, O> => ({
  kind: 'transformation',
  type: 'transform',
  '~run': (dataset) => Object.assign(dataset, { value: operation(dataset.value as I) }),
})
export const toLowerCase = () => transform((value: string) => value.toLowerCase())
export const toUpperCase = () => transform((value: string) => value.toUpperCase())

export const lazy = <I, O>(getter: (input: unknown) => GenericSchema<I, O>) =>
  schema<I, O>('lazy', { getter }, (dataset, settings) =>
    getter(dataset.value)['~run'](dataset, settings),
  )

export function optional<I, O>(
  wrapped: GenericSchema<I, O>,
): OptionalSchema<I | undefined, O | undefined>
export function optional<I, O>(
  wrapped: GenericSchema<I, O>,
  value: NoInfer<I>,
): OptionalSchema<I | undefined, O>
export function optional(wrapped: GenericSchema, value?: unknown): GenericSchema {
  return schema('optional', { wrapped, default: value }, (dataset, settings) => {
    if (dataset.value === undefined) dataset.value = value
    if (dataset.value !== undefined) return wrapped['~run'](dataset, settings)
    return { ...dataset, typed: true }
  })
}

/** The first schema that accepts the input. */
export const union = <const S extends readonly GenericSchema[]>(
  options: S,
): GenericSchema<InferInput<S[number]>, InferOutput<S[number]>> =>
  schema('union', { options }, function (this: Step, dataset, settings) {
    const results = options.map((one) => one['~run']({ value: dataset.value }, settings))
    const message = settings.message ?? OTHER
    return results.find(({ issues }) => !issues) ?? fail(this, dataset, { message })
  })

/** What the schema of a value with parts does with them. */
interface PartReader {
  /** Parses a part, or its key, and adds its problems to those of the whole. */
  parse(
    part: GenericSchema,
    key: string | number,
    value: unknown,
    isKey?: boolean,
  ): { value: unknown; isValid: boolean }
  /** Adds a problem of the whole. It does not end the check of the whole. */
  report: AddProblem
}

/**
 * Reports a problem of a field, or of a value in it.
 * @param isKey true if the problem is the name of the field
 */
export type AddProblem = (path: (string | number)[], expected: string, isKey?: boolean) => void

/** A schema of values with parts: those that pass a test. */
export const container = <T, I, O>(
  type: string,
  own: object,
  fits: (input: unknown) => boolean,
  message: string | undefined,
  parse: (input: T, parts: PartReader) => unknown,
): GenericSchema<I, O> =>
  schema(type, own, function (this: Step, dataset, settings) {
    const input = dataset.value
    if (!fits(input)) return fail(this, dataset, { message: message ?? settings.message ?? OTHER })
    const whole: Dataset = { value: input, typed: true }
    const add = (issues: Issue[]) => {
      if (issues.length > 0) whole.issues = [...(whole.issues ?? []), ...issues]
    }
    const item = (key: unknown, isKey = false): PathItem => ({
      key,
      origin: isKey ? 'key' : 'value',
    })
    whole.value = parse(input as T, {
      parse(part, key, value, isKey) {
        const parsed = part['~run']({ value: isKey ? key : value }, settings)
        const { issues = [], typed = false } = parsed
        add(
          issues.map(({ message, path = [] }) => ({ message, path: [item(key, isKey), ...path] })),
        )
        whole.typed &&= typed
        return { value: parsed.value, isValid: !parsed.issues }
      },
      report: (path, message, isKey) =>
        add([{ message, path: path.map((key) => item(key, isKey)) }]),
    })
    return whole
  })

export const array = <I, O>(item: GenericSchema<I, O>, message?: string) =>
  container<unknown[], I[], O[]>('array', { item }, Array.isArray, message, (input, { parse }) =>
    Array.from(input, (value, key) => parse(item, key, value).value),
  )

export const isObject = (input: unknown): input is Record<string, unknown> =>
  typeof input === 'object' && input !== null && !Array.isArray(input)

/** An object of names and values. Drops the names of prototypes. */
export const record = <K extends string, I, O>(
  key: GenericSchema<K>,
  value: GenericSchema<I, O>,
  message?: string,
) =>
  container<object, Record<K, I>, Record<K, O>>(
    'record',
    { key, value },
    isObject,
    message,
    (input, { parse }) =>
      Object.fromEntries(
        Object.entries(input)
          .filter(([name]) => !/^(__proto__|prototype|constructor)$/.test(name))
          .map(([name, one]) => [parse(key, name, one, true).value, parse(value, name, one).value]),
      ),
  )

/** Runs a schema, and then each step on the result of the one before. */
export function pipe<I, A, B>(first: GenericSchema<I, A>, b: Step<A, B>): GenericSchema<I, B>
export function pipe<I, A, B, C>(
  first: GenericSchema<I, A>,
  b: Step<A, B>,
  c: Step<B, C>,
): GenericSchema<I, C>
export function pipe<I, A, B, C, D>(
  first: GenericSchema<I, A>,
  b: Step<A, B>,
  c: Step<B, C>,
  d: Step<C, D>,
): GenericSchema<I, D>
export function pipe<I, A, B, C, D, E>(
  first: GenericSchema<I, A>,
  b: Step<A, B>,
  c: Step<B, C>,
  d: Step<C, D>,
  e: Step<D, E>,
): GenericSchema<I, E>
export function pipe(first: GenericSchema, ...steps: Step[]): GenericSchema {
  const pipe = [first, ...steps]
  const run: Step['~run'] = (dataset, settings) => {
    let current = dataset
    for (const step of pipe) {
      const { issues } = current
      // A validation finds further problems.
      if (!issues || (step.kind === 'validation' && !settings.abortPipeEarly))
        current = step['~run'](current, settings)
      else if (step.kind !== 'validation') current.typed = false
    }
    return current
  }
  return Object.assign({ ...first }, { pipe, '~run': run })
}

/** A schema with other settings. */
export const config = <S extends GenericSchema>(schema: S, own: Settings): S => ({
  ...schema,
  '~run': (dataset: Dataset, settings: Settings) =>
    schema['~run'](dataset, { ...settings, ...own }),
})

/** Returns the output, or all problems. */
export function safeParse<O>(
  schema: GenericSchema<unknown, O>,
  input: unknown,
):
  | { success: true; output: O; issues?: undefined }
  | { success: false; output?: undefined; issues: Issue[] } {
  const { value, issues } = schema['~run']({ value: input }, {})
  return issues ? { success: false, issues } : { success: true, output: value as O }
}

/** @throws Error with the first problem */
export function parse<O>(schema: GenericSchema<unknown, O>, input: unknown): O {
  const { issues, output } = safeParse(schema, input)
  if (issues) throw new Error(issues[0]!.message)
  return output!
}
