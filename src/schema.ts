/** The shape of a configuration, told once. Every message is the text of what is expected at its place. */
import * as v from 'valibot'
import { parseDuration } from './duration.ts'

const MAX_UNITS = 2 ** 51
/** Of units and window: sums of three such products are exact in a double, so the Lua never rounds. A million a month fits. */
const MAX_PRODUCT = Math.floor(2 ** 53 / 3)

const pattern = (expected: string, regex: RegExp) =>
  v.custom<string>((input) => typeof input === 'string' && regex.test(input), expected)
const oneOf = <const T extends string>(...values: T[]) =>
  v.picklist(values, `one of ${values.join(', ')}`)
const whole = (low: number, high = MAX_UNITS) =>
  v.custom<number>(
    (input) => Number.isSafeInteger(input) && (input as number) >= low && (input as number) <= high,
    high === MAX_UNITS
      ? `a whole number of at least ${low}`
      : `a whole number from ${low} to ${high}`,
  )

const duration = v.pipe(
  v.custom(
    (input) => parseDuration(input) !== undefined,
    'a duration like "10s", or whole milliseconds',
  ),
  v.transform((input) => parseDuration(input)!),
)

const share = v.custom<number>(
  (input) => typeof input === 'number' && input > 0 && input <= 1,
  'a number above 0 and at most 1',
)

/** One value or a list of them; always a list when parsed. */
const list = <S extends v.GenericSchema>(schema: S) =>
  v.pipe(
    v.unknown(),
    v.transform((input) => (Array.isArray(input) ? input : [input])),
    v.array(schema),
    v.minLength(1, 'at least one'),
  )

type Problem = (path: (string | number)[], expected: string) => void

/**
 * An object with these fields and no others: each unknown field is a problem of its own.
 * `relations` checks what the fields owe each other; some of them may be wrong by themselves, which has been said by then.
 */
function object<E extends v.ObjectEntries>(
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

const ipPrefixes = object({ v4: v.optional(whole(1, 32), 32), v6: v.optional(whole(1, 128), 64) })

const keyPart = v.lazy((input) =>
  typeof input === 'object' && input !== null
    ? v.pipe(
        object({ ip: ipPrefixes }),
        v.transform(({ ip }) => ({ source: 'ip' as const, ...ip })),
      )
    : v.pipe(
        pattern('"ip", { ip: { v4, v6 } } or "header:<name>"', /^(ip|header:[\w!#$%&'*+.^`|~-]+)$/),
        v.transform((part) =>
          part === 'ip'
            ? { source: 'ip' as const, v4: 32, v6: 64 }
            : { source: 'header' as const, name: part.slice('header:'.length).toLowerCase() },
        ),
      ),
)

const match = object({
  host: v.optional(
    list(pattern('a host like "api.example.com" or "*.example.com"', /^(\*\.)?[\w-]+(\.[\w-]+)*$/)),
  ),
  path: v.optional(
    list(
      pattern(
        'a path like "/login", "/users/:id" or "/api/*"',
        /^(?=\/)(\/(:\w+|[^\s:*?#/][^\s*?#/]*))*(\/\*?)?$/,
      ),
    ),
  ),
  method: v.optional(list(pattern('a method like "POST"', /^[A-Za-z]+$/))),
})

const windows = ['fixed-window', 'sliding-window', 'sliding-log'] as const
const buckets = ['token-bucket', 'gcra', 'leaky-bucket'] as const

const policy = object(
  {
    name: pattern('up to 64 letters, digits, "_", "." or "-"', /^[A-Za-z0-9][\w.-]{0,63}$/),
    algorithm: v.optional(oneOf(...windows, ...buckets), 'sliding-window'),
    limit: whole(1),
    window: duration,
    burst: v.optional(whole(1)),
    align: v.optional(oneOf('first-request', 'clock')),
    key: v.optional(list(keyPart), 'ip'),
    match: v.optional(match, {}),
    cost: v.optional(whole(0), 1),
    mode: v.optional(oneOf('enforce', 'shadow'), 'enforce'),
    deadline: v.optional(duration),
    onStoreError: v.optional(oneOf('allow', 'deny', 'local'), 'allow'),
    localShare: v.optional(share, 0.25),
  },
  ({ algorithm, limit, window, burst, align }, problem) => {
    if (burst !== undefined && windows.some((name) => name === algorithm)) {
      problem(['burst'], `nothing (${algorithm} has no burst)`)
    }
    // A log keeps an entry of 40 to 120 bytes for every unit.
    if (algorithm === 'sliding-log' && typeof limit === 'number' && limit > 10_000) {
      problem(['limit'], 'at most 10000 with sliding-log (sliding-window has no such bound)')
    }
    if (align !== undefined && algorithm !== 'fixed-window') {
      problem(['align'], 'nothing (only fixed-window has an align)')
    }
    for (const [name, size] of Object.entries({ limit, burst })) {
      if (typeof size === 'number' && typeof window === 'number' && size * window > MAX_PRODUCT) {
        problem([name], `at most ${Math.floor(MAX_PRODUCT / window)} with this window`)
      }
    }
  },
)

const ORIGIN = 'a URL like "https://origin.example.com"'

/** Whether a configuration, or the variable ORIGIN, may name this as its origin. */
export const isOrigin = (input: unknown): input is string =>
  input === 'zone' ||
  (typeof input === 'string' && /^https?:\/\/[^\s?#@]+$/.test(input) && URL.canParse(input))

export const config = object(
  {
    origin: v.optional(v.custom<string>(isOrigin, `"zone" or ${ORIGIN}`)),
    originTimeout: v.optional(duration, 60_000),
    // One call of the script takes 128 keys, and each policy may need one.
    policies: v.pipe(
      v.array(policy, 'a list of policies'),
      v.maxLength(128, 'at most 128 policies'),
    ),
    deadline: v.optional(duration, 300),
    subjects: v.optional(oneOf('hashed', 'plain'), 'hashed'),
    degradedField: v.optional(v.boolean('true or false'), false),
  },
  ({ policies }, problem) => {
    if (!Array.isArray(policies)) return
    const names = policies.map((policy) => policy?.name)
    names.forEach((name, index) => {
      if (name !== undefined && names.indexOf(name) < index) {
        problem(['policies', index, 'name'], 'a name that no other policy has')
      }
    })
  },
)
