import * as v from 'valibot'
import { networkRange } from '../../base/ip.ts'
import { list, object, pattern } from './shapes.ts'

/** Which requests, parsed: hosts, methods and header names as they are compared, lists everywhere. */
export interface Condition {
  host?: string[] | undefined
  path?: string[] | undefined
  method?: string[] | undefined
  header?: { name: string; values: string[] | undefined }[] | undefined
  country?: string[] | undefined
  ip?: string[] | undefined
  not?: Condition[] | undefined
}

const network = v.custom<string>(
  (input) => typeof input === 'string' && networkRange(input) !== undefined,
  'an address, or a network without bits beyond its prefix like "203.0.113.0/24"',
)

const value = pattern(
  'true, or a text, with "*" at either end only, like "curl/*"',
  /^(?!\**$)\*?[^*]*\*?$/,
)
/** But those that valibot leaves out of a record: a condition without its field would be met by everybody. */
const FIELD_NAME = /^(?!(__proto__|prototype|constructor)$)[\w!#$%&'*+.^`|~-]+$/

const headers = v.pipe(
  v.custom<Record<string, unknown>>(
    (input) =>
      typeof input === 'object' &&
      input !== null &&
      !Array.isArray(input) &&
      Object.keys(input).length > 0 &&
      Object.keys(input).every((name) => FIELD_NAME.test(name)),
    'an object of field names like { "x-plan": "free" }',
  ),
  v.record(
    v.string(),
    v.lazy(
      (input): v.GenericSchema<unknown, true | string[]> =>
        input === true ? v.literal(true) : list(value),
    ),
  ),
  v.transform((input) =>
    Object.entries(input).map(([name, values]) => ({
      name: name.toLowerCase(),
      values: values === true ? undefined : values.map((value) => value.toLowerCase()),
    })),
  ),
)

/** The fields of a condition, for whatever is a condition and more. */
export const conditionFields = {
  host: v.optional(
    list(
      v.pipe(
        pattern('a host like "api.example.com" or "*.example.com"', /^(\*\.)?[\w-]+(\.[\w-]+)*$/),
        v.toLowerCase(),
      ),
    ),
  ),
  path: v.optional(
    list(
      pattern(
        'a path like "/login", "/users/:id" or "/api/*"',
        /^(?=\/)(?!.*\/(:\w+)(?=\/|$).*\/\1(?=\/|$))(\/(:\w+|[^\s:*?#/][^\s*?#/]*))*(\/\*?)?$/,
      ),
    ),
  ),
  method: v.optional(
    v.pipe(
      list(v.pipe(pattern('a method like "POST"', /^[A-Za-z]+$/), v.toUpperCase())),
      // Whoever answers GET answers HEAD by the same handler.
      v.transform((methods) =>
        methods.flatMap((name) => (name === 'GET' ? ['GET', 'HEAD'] : name)),
      ),
    ),
  ),
  header: v.optional(headers),
  country: v.optional(
    list(v.pipe(pattern('a country code like "DE"', /^[A-Za-z][A-Za-z\d]$/), v.toUpperCase())),
  ),
  ip: v.optional(list(network)),
  not: v.optional(v.lazy((): v.GenericSchema<unknown, Condition[]> => list(condition))),
}

export const condition: v.GenericSchema<unknown, Condition> = object(conditionFields)

/** What of a parsed object is its condition. */
export const conditionOf = ({
  host,
  path,
  method,
  header,
  country,
  ip,
  not,
}: Condition): Condition => ({
  host,
  path,
  method,
  header,
  country,
  ip,
  not,
})
