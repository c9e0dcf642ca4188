/** What the shapes of a configuration are made of. Every message is the text of what is expected at its place. */
import * as v from 'valibot'
import { parseDuration } from '../../base/duration.ts'

export const MAX_UNITS = 2 ** 51

export const pattern = (expected: string, regex: RegExp) =>
  v.custom<string>((input) => typeof input === 'string' && regex.test(input), expected)
export const oneOf = <const T extends string>(...values: T[]) =>
  v.picklist(values, `one of ${values.join(', ')}`)
export const whole = (low: number, high = MAX_UNITS) =>
  v.custom<number>(
    (input) => Number.isSafeInteger(input) && (input as number) >= low && (input as number) <= high,
    high === MAX_UNITS
      ? `a whole number of at least ${low}`
      : `a whole number from ${low} to ${high}`,
  )

/** Of policies and of entries in lists: they stand in header fields and logs. */
export const name = pattern(
  'up to 64 letters, digits, "_", "." or "-"',
  /^[A-Za-z0-9][\w.-]{0,63}$/,
)

export const duration = v.pipe(
  v.custom(
    (input) => parseDuration(input) !== undefined,
    'a duration like "10s", or whole milliseconds',
  ),
  v.transform((input) => parseDuration(input)!),
)

/** The longest that a timer of the platform waits, ms: it fires at once where it is told to wait longer. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** How long something is waited for. */
export const timeout = v.pipe(
  duration,
  v.maxValue(LONGEST_TIMER_MS, 'a duration of less than 25 days'),
)

/** One value or a list of them; always a list when parsed. */
export const list = <S extends v.GenericSchema>(schema: S, least = 1) =>
  v.pipe(
    v.unknown(),
    v.transform((input) => (Array.isArray(input) ? input : [input])),
    v.array(schema),
    v.minLength(least, 'at least one'),
  )

export type Problem = (path: (string | number)[], expected: string) => void

/**
 * An object with these fields and no others: each unknown field is a problem of its own.
 * `relations` checks what the fields owe each other; some of them may be wrong by themselves, which has been said by then.
 */
export function object<E extends v.ObjectEntries>(
  entries: E,
  relations: (value: Record<string, unknown>, problem: Problem) => void = () => {},
): v.GenericSchema<unknown, v.InferOutput<v.ObjectSchema<E, undefined>>> {
  const names = Object.keys(entries)
  const blank = Object.fromEntries(names.map((name) => [name, undefined]))
  const isObject = (input: unknown) =>
    typeof input === 'object' && input !== null && !Array.isArray(input)
  return v.pipe(
    v.custom<object>(isObject, 'an object'),
    v.transform((input) => ({ ...blank, ...input })), // so that a missing field is told by its own text
    v.looseObject(entries),
    v.rawCheck<object>(({ dataset, addIssue }) => {
      if (!isObject(dataset.value)) return
      const value = dataset.value as Record<string, unknown>
      const problem: Problem = (path, message) => {
        let at: unknown = value
        const items = path.map((key) => {
          const input = at as Record<string, unknown>
          at = input[key]
          return {
            type: 'object' as const,
            origin: 'value' as const,
            input,
            key: String(key),
            value: at,
          }
        })
        addIssue({ message, path: items as [v.ObjectPathItem] })
      }
      for (const name of Object.keys(value)) {
        if (!names.includes(name)) problem([name], `one of the fields ${names.join(', ')}`)
      }
      relations(value, problem)
    }),
  ) as unknown as v.GenericSchema<unknown, v.InferOutput<v.ObjectSchema<E, undefined>>>
}
