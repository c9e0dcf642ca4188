/** What callers of the decision API send: the bodies of docs/reference/decision-api.md. Messages are the texts of what is expected. */
import * as v from 'valibot'
import { parseDuration } from '../base/duration.ts'
import { networkRange } from '../base/ip.ts'
import {
  either,
  first,
  type Input,
  isObject,
  listOf,
  MAX_UNITS,
  type Named,
  named,
  object,
  says,
  text,
  whole,
} from '../config/schema/shapes.ts'

/** The most asks in one list. */
const MAX_ASKS = 100

/** The most problems of a body that are reported. */
export const MAX_PROBLEMS = 20

const MAX_HEADERS = 100

// Those that no Request may have (Fetch, 2.2.1), and no other spelling of them.
const method = text(
  'a method of up to 32 characters, and not CONNECT, TRACE or TRACK',
  1,
  32,
  /^(?!(?:[Cc][Oo][Nn][Nn][Ee][Cc][Tt]|[Tt][Rr][Aa][Cc][EeKk])$)[\w!#$%&'*+.^`|~-]+$/,
)

const url = says(
  'an absolute http or https URL of up to 8192 characters, without user name, password and spaces',
  v.pipe(
    v.string(),
    v.maxLength(8192),
    v.regex(/^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^\s/?#@\\]+(?:[/?#\\]\S*)?$/),
    v.check((input) => URL.canParse(input)),
  ),
)

const ip = says(
  'an IPv4 or IPv6 address',
  v.pipe(
    v.string(),
    v.regex(/^[\dA-Fa-f.:]{1,45}$/),
    v.check((input) => networkRange(input) !== undefined),
  ),
)

const headers = first(
  (input) => isObject(input) && Object.keys(input).length <= MAX_HEADERS,
  `an object of up to ${MAX_HEADERS} header fields`,
  v.pipe(
    v.record(
      text('a field name of up to 256 characters', 1, 256, /^[\w!#$%&'*+.^`|~-]+$/),
      // The bytes that a field may hold (RFC 9110, 5.5), each a character.
      text(
        'a value of up to 8192 characters, none of them a control character or above U+00FF',
        0,
        8192,
        /^[\t\u0020-\u007e\u0080-\u00ff]*$/,
      ),
    ),
    v.maxEntries(MAX_HEADERS),
  ),
)

const requestFields = {
  /** Defaults to `GET`. */
  method: v.optional(method),
  /** Absolute, `http` or `https`, up to 8192 characters. */
  url,
  /** The client's address; without it the key `ip` is missing. */
  ip: v.optional(ip),
  /** Up to 100, each value up to 8192 characters. */
  headers: v.optional(headers),
  /** ISO 3166-1 alpha-2. */
  country: v.optional(text('a country code like "DE"', 2, 2, /^[A-Za-z][A-Za-z\d]$/)),
  /** The number of the client's autonomous system. */
  asn: v.optional(
    says(
      'the number of an autonomous system, like 64500',
      v.union([
        v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(2 ** 32 - 1)),
        v.pipe(v.string(), v.regex(/^[1-9]\d{0,9}$/)),
      ]),
    ),
  ),
  /** IATA code of a data centre. */
  colo: v.optional(text('the IATA code of a data centre, like "FRA"', 3, 4, /^[A-Za-z\d]+$/)),
}

/** A request as a caller describes it: the properties that policies can look at. */
export interface RequestDescription extends Input<typeof requestFields>, Named {}
export const requestDescription = named<RequestDescription>()(object(requestFields))

// A larger number has been rounded where its JSON was read: neighbours would share a quota.
const exact = v.pipe(
  v.number(),
  v.minValue(Number.MIN_SAFE_INTEGER),
  v.maxValue(Number.MAX_SAFE_INTEGER),
)

/** One value of a policy's key; a text has at most 1024 characters. */
export type KeyValue = v.InferInput<typeof keyValue>
const keyValue = v.union([v.pipe(v.string(), v.maxLength(1024)), exact])

/** The values of a policy's key, in its order; `null` is a part that is missing. One value alone for a key of one part. */
export type KeyValues = v.InferInput<typeof keyValues>
export const keyValues = either(
  Array.isArray,
  says('a text of up to 1024 characters, a number, or a list of them', keyValue),
  listOf(
    says('a text of up to 1024 characters, a number, or null', v.nullable(keyValue)),
    16,
    'values of the key',
  ),
)

const policyFields = {
  policy: text('the name of a policy; or request, and neither policy nor key', 1, 64),
  key: keyValues,
  plan: v.optional(text('the name of a plan, of up to 64 characters', 0, 64)),
}
const describedFields = { request: requestDescription }
const besidePolicy = { request: 'nothing beside policy: one of the two' }
const besideRequest = {
  key: 'nothing beside request, which the key is read from',
  plan: 'nothing beside request, which the plan is read from',
}

/** One policy, whose key is given: its `match` and the lists are ignored. */
export interface ByPolicy extends Input<typeof policyFields>, Named {}

/** Every policy that applies to a request, as in the proxy. */
export interface ByRequest extends Input<typeof describedFields>, Named {}

/** Whether an object has one field, and not another. */
const hasOnly = (field: string, not: string) => (input: unknown) =>
  isObject(input) && Object.hasOwn(input, field) && !Object.hasOwn(input, not)

/** By a policy and the values of its key, or by a request; with more fields. */
const about = <More>(more: v.ObjectEntries) =>
  either(
    hasOnly('request', 'policy'),
    object({ ...policyFields, ...more }, undefined, besidePolicy),
    object({ ...describedFields, ...more }, undefined, besideRequest),
  ) as v.GenericSchema<unknown> as v.GenericSchema<(ByPolicy & More) | (ByRequest & More)>

const askFields = {
  /** Whole units, from 0 to 2^51. Defaults to the price by the policy or its rules. By a request, it is the price of every policy that applies. */
  cost: v.optional(whole(0)),
  /** `peek` charges nothing. Defaults to `take`. */
  mode: v.optional(says('take or peek', v.picklist(['take', 'peek']))),
}
interface AskOptions extends Input<typeof askFields>, Named {}

/** One thing to decide. */
export type Ask = (ByPolicy & AskOptions) | (ByRequest & AskOptions)
export const ask = about<AskOptions>(askFields)

const refundFields = {
  /** Units. Defaults to the same as of an ask. */
  cost: v.optional(whole(0)),
  /** `decidedAt` of the decision. */
  decidedAt: v.optional(whole(0, MAX_UNITS, 'of milliseconds: decidedAt of the decision')),
  /** `slot` of the decision. */
  slot: v.optional(text('slot of the decision', 1, 64, /^[\w-]+$/)),
}

interface RefundOptions extends Input<typeof refundFields>, Named {}

/** A charge to return. */
export type RefundAsk = (ByPolicy & RefundOptions) | (ByRequest & RefundOptions)
export const refund = about<RefundOptions>(refundFields)

const oneOrMany = <I, O>(one: v.GenericSchema<I, O>, what: string) =>
  either(Array.isArray, one, listOf(one, MAX_ASKS, what))

/** The body of `decide`. */
export const decideBody = oneOrMany(ask, 'asks')

/** The body of `refund`. */
export const refundBody = oneOrMany(refund, 'refunds')

/** Whose state of one policy, with more fields. */
function targetWith<const E extends v.ObjectEntries>(more: E) {
  const { key, plan } = policyFields
  return either(
    hasOnly('request', 'key'),
    object({ key, plan, ...more }, undefined, {
      request: 'nothing beside key: one of the two',
    }),
    object({ ...describedFields, ...more }, undefined, besideRequest),
  )
}

/** The body of `peek`, `reset` and `unban`. */
export const target = targetWith({})
export type Target = v.InferOutput<typeof target>

const duration = says(
  'a duration like "1h", or whole milliseconds',
  v.pipe(
    v.union([
      v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(Number.MAX_SAFE_INTEGER)),
      v.pipe(v.string(), v.maxLength(32), v.regex(/^\d+(?:\.\d+)? ?(?:ms|s|m|h|d|w)$/)),
    ]),
    v.check((input) => parseDuration(input) !== undefined),
    v.transform((input) => parseDuration(input)!),
  ),
)

/** The body of `ban`: `for` comes out in milliseconds. */
export const banBody = targetWith({ for: duration })

/** The body of `try`. */
export const tryBody = object(describedFields)
