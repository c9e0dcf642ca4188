import * as v from 'valibot'
import { networkRange } from '../../base/ip.ts'
import { either, type Input, isObject, list, type Output, object, pattern } from './shapes.ts'

const value = pattern(
  'true, or a text, with "*" at either end only, like "curl/*"',
  /^(?!\**$)\*?[^*]*\*?$/,
)

/** Without the names that valibot leaves out of a record: a condition without its field would match every request. */
const FIELD_NAME = /^(?!(__proto__|prototype|constructor)$)[\w!#$%&'*+.^`|~-]+$/

const headers = v.pipe(
  v.custom<Record<string, true | string | string[]>>(
    (input) =>
      isObject(input) &&
      Object.keys(input).length > 0 &&
      Object.keys(input).every((name) => FIELD_NAME.test(name)),
    'an object of field names like { "x-plan": "free" }',
  ),
  v.record(
    v.string(),
    either((input) => input === true, list(value), v.literal(true)),
  ),
  v.transform((input) =>
    Object.entries(input).map(([name, values]) => ({
      name: name.toLowerCase(),
      values: values === true ? undefined : values.map((value) => value.toLowerCase()),
    })),
  ),
)

const fields = {
  /** `www.example.com`, or `*.example.com` for every host below. */
  host: v.optional(
    list(
      v.pipe(
        pattern('a host like "api.example.com" or "*.example.com"', /^(\*\.)?[\w-]+(\.[\w-]+)*$/),
        v.toLowerCase(),
      ),
    ),
  ),
  /** `/login`, `/users/:id` (one segment), `/api/*` (`/api` and all below). Other spellings of a path match as well. */
  path: v.optional(
    list(
      pattern(
        'a path like "/login", "/users/:id" or "/api/*"',
        /^(?=\/)(?!.*\/(:\w+)(?=\/|$).*\/\1(?=\/|$))(\/(:\w+|[^\s:*?#/][^\s*?#/]*))*(\/\*?)?$/,
      ),
    ),
  ),
  /** `POST`. `GET` covers `HEAD`. */
  method: v.optional(
    v.pipe(
      list(v.pipe(pattern('a method like "POST"', /^[A-Za-z]+$/), v.toUpperCase())),
      // An origin answers HEAD with the handler of GET.
      v.transform((methods) =>
        methods.flatMap((name) => (name === 'GET' ? ['GET', 'HEAD'] : name)),
      ),
    ),
  ),
  /** By name: `true` if the field is present, or its possible values, with `*` at either end for anything. Letter case does not matter. */
  header: v.optional(headers),
  /** ISO 3166-1 alpha-2, as Cloudflare reports it; `T1` is Tor, `XX` unknown. */
  country: v.optional(
    list(v.pipe(pattern('a country code like "DE"', /^[A-Za-z][A-Za-z\d]$/), v.toUpperCase())),
  ),
  /** Networks and addresses of clients: `203.0.113.0/24`, `2001:db8::/32`, `203.0.113.7`. */
  ip: v.optional(
    list(
      v.custom<string>(
        (input) => typeof input === 'string' && networkRange(input) !== undefined,
        'an address, or a network without bits beyond its prefix like "203.0.113.0/24"',
      ),
    ),
  ),
}

/** Which requests: every field given has to match; of a list, any one value. */
export interface MatchOptions extends Input<typeof fields> {
  /** Excludes requests that one of these matches. */
  not?: MatchOptions | MatchOptions[] | undefined
}

/** Which requests, parsed: hosts, methods and header names as they are compared, lists everywhere. */
export interface Condition extends Partial<Output<typeof fields>> {
  not?: Condition[] | undefined
}

/** The fields of a condition, for every object that is a condition and more. */
export const conditionFields = {
  ...fields,
  /** Excludes requests that one of these matches. */
  not: v.optional(
    v.lazy((): v.GenericSchema<MatchOptions | MatchOptions[], Condition[]> => list(condition)),
  ),
}

export const condition: v.GenericSchema<MatchOptions, Condition> = object(conditionFields)
