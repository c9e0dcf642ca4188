import * as v from 'valibot'
import { networkRange } from '../../base/ip.ts'
import { isObject } from '../../base/json.ts'
import {
  either,
  type Input,
  list,
  type Named,
  named,
  type Output,
  object,
  pattern,
  whole,
} from './shapes.ts'

const value = pattern(
  'true, or a string with "*" only at its start or end, like "curl/*"',
  /^(?!\**$)\*?[^*]*\*?$/,
)

/** Excludes the names that valibot drops from a record, because a condition that loses its field would match every request. */
const FIELD_NAME = /^(?!(__proto__|prototype|constructor)$)[\w!#$%&'*+.^`|~-]+$/
const NAME = /^(?!(__proto__|prototype|constructor)$)./s

type ConditionValues = Record<string, true | string | string[]>
/** A name with the values that match; `undefined` for any value. */
export interface NamedValues {
  name: string
  values: string[] | undefined
}

/** Values by name. `true` is any value. Letter case of names matters, except in those of headers. */
const valuesByName = (names = NAME): v.GenericSchema<ConditionValues, NamedValues[]> =>
  v.pipe(
    v.custom<ConditionValues>(
      (input) =>
        isObject(input) &&
        Object.keys(input).length > 0 &&
        Object.keys(input).every((name) => names.test(name)),
      'an object of names and values like { "x-plan": "free" }',
    ),
    v.record(
      v.string(),
      either((input) => input === true, list(value), v.literal(true)),
    ),
    v.transform((input) =>
      Object.entries(input).map(([name, values]) => ({
        name: names === FIELD_NAME ? name.toLowerCase() : name,
        values: values === true ? undefined : values.map((value) => value.toLowerCase()),
      })),
    ),
  )

const scoreFields = () => ({
  /** Matches scores from this one on: 1 to 99. Defaults to 1. */
  atLeast: v.optional(whole(1, 99)),
  /** Matches scores below this one: 2 to 99. Defaults to no upper bound. */
  below: v.optional(whole(2, 99)),
})

/** A range of bot scores. */
export interface BotScore extends Input<ReturnType<typeof scoreFields>>, Named {}

const fields = () => ({
  /** A host or a list of hosts: `'www.example.com'`, or `'*.example.com'` for every subdomain. Letter case does not matter. Defaults to any host. */
  host: v.optional(
    list(
      v.pipe(
        pattern('a host like "api.example.com" or "*.example.com"', /^(\*\.)?[\w-]+(\.[\w-]+)*$/),
        v.toLowerCase(),
      ),
    ),
  ),
  /**
   * A path or a list of paths: `'/login'`, `'/users/:id'` (a parameter is one segment), `'/api/*'` (`/api` and every path below it).
   * Other spellings of the same path match too, such as `//login/`. Defaults to any path.
   */
  path: v.optional(
    list(
      pattern(
        'a path like "/login", "/users/:id" or "/api/*"',
        /^(?=\/)(?!.*\/(:\w+)(?=\/|$).*\/\1(?=\/|$))(\/(:\w+|[^\s:*?#/][^\s*?#/]*))*(\/\*?)?$/,
      ),
    ),
  ),
  /** A method or a list of methods, such as `'POST'`. `'GET'` includes `HEAD`. Defaults to any method. */
  method: v.optional(
    v.pipe(
      list(v.pipe(pattern('a method like "POST"', /^[A-Za-z]+$/), v.toUpperCase())),
      // An origin answers HEAD with the handler of GET.
      v.transform((methods) =>
        methods.flatMap((name) => (name === 'GET' ? ['GET', 'HEAD'] : name)),
      ),
    ),
  ),
  /**
   * Header names with the values to match: `{ 'x-plan': 'free' }`. A value may be a list, may start or end with `*`, or is `true` for any
   * value. Letter case does not matter. The request must match every header. Defaults to any headers.
   */
  header: v.optional(valuesByName(FIELD_NAME)),
  /**
   * Fields of the JSON body with the values to match, as in `header`: `{ method: 'tools/call', 'params.name': 'search*' }`. A body that cannot
   * be read matches. Requires `bodies()`; not for `allow` and `deny`. Defaults to any body.
   */
  body: v.optional(valuesByName()),
  /** A country code or a list of codes: ISO 3166-1 alpha-2 as reported by Cloudflare, `'T1'` for Tor, `'XX'` for unknown. Defaults to any country. */
  country: v.optional(
    list(v.pipe(pattern('a country code like "DE"', /^[A-Za-z][A-Za-z\d]$/), v.toUpperCase())),
  ),
  /** A client address, a CIDR network, or a list of them: `'203.0.113.7'`, `'203.0.113.0/24'`, `'2001:db8::/32'`. Defaults to any address. */
  ip: v.optional(
    list(
      v.custom<string>(
        (input) => typeof input === 'string' && networkRange(input) !== undefined,
        'an IP address, or a network without host bits like "203.0.113.0/24"',
      ),
    ),
  ),
  /**
   * Names of query parameters with the values to match, as in `header`: `{ action: 'export' }`. One value of a repeated parameter
   * suffices. Another spelling of a name, such as `[action]`, counts in the way that is strictest for the client. Defaults to any query.
   */
  query: v.optional(valuesByName()),
  /**
   * `true` for a request with a verified JSON Web Token, `false` for one without. A token that is not valid counts in the way that is
   * strictest for the client. Requires `jwt()`. Defaults to any request.
   */
  jwt: v.optional(v.boolean()),
  /**
   * `true` for a request with an API key of `apiKeys.known`, `false` for one without. A key that is not known counts in the way that is
   * strictest for the client. Requires `apiKeys.known`. Defaults to any request.
   */
  apiKey: v.optional(v.boolean()),
  /** The number of the client's autonomous system, or a list of numbers, as reported by Cloudflare: `64500`. Defaults to any network. */
  asn: v.optional(list(whole(1, 2 ** 32 - 1))),
  /**
   * `true` for a bot that Cloudflare has verified, `false` for other requests, or categories of verified bots, such as `'AI Crawler'`. Letter
   * case does not matter. Requires Bot Management. Defaults to any request.
   */
  verifiedBot: v.optional(
    either(
      (input) => typeof input === 'boolean',
      list(v.pipe(pattern('true, false, or a category like "AI Crawler"', /./), v.toLowerCase())),
      v.boolean(),
    ),
  ),
  /** The JA4 fingerprint of the client's TLS library, or a list. It may start or end with `*`. Requires Bot Management. Defaults to any. */
  ja4: v.optional(list(v.pipe(value, v.toLowerCase()))),
  /** Range of Cloudflare's bot score, 1 (a bot) to 99 (a human): `{ below: 30 }`. Requires Bot Management. Defaults to any score. */
  botScore: v.optional(
    named<BotScore>()(
      object(scoreFields, ({ atLeast = 1, below }, problem, all) => {
        const isEmpty = all.atLeast === undefined && all.below === undefined
        if (isEmpty || (below && below <= atLeast)) problem(['below'], 'a score above atLeast')
      }),
    ),
  ),
})

/** Selects requests. A request must match every field that is set; it matches a list if it matches any value of the list. */
export interface MatchOptions extends Input<ReturnType<typeof fields>> {
  /** A condition or a list of conditions that exclude requests: a request that matches any of them does not match. Defaults to none. */
  not?: MatchOptions | MatchOptions[] | undefined
}

/** A parsed condition. Every field is a list. Hosts and headers are in lower case, methods and countries in upper case. */
export interface Condition extends Partial<Output<ReturnType<typeof fields>>> {
  not?: Condition[] | undefined
}

export const conditionFields = () => ({
  ...fields(),
  /** A condition or a list of conditions that exclude requests: a request that matches any of them does not match. Defaults to none. */
  not: v.optional(
    v.lazy((): v.GenericSchema<MatchOptions | MatchOptions[], Condition[]> => list(condition)),
  ),
})

export const condition: v.GenericSchema<MatchOptions, Condition> = object(conditionFields)
