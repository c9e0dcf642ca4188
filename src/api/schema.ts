/** What callers of the decision API send: the bodies of docs/decision-api.md. Messages are the texts of what is expected. */
import * as v from 'valibot'
import { parseDuration } from '../base/duration.ts'
import { networkRange } from '../base/ip.ts'
import { MAX_UNITS } from '../config/schema/shapes.ts'
import {
  either,
  entriesOf,
  fields,
  hasOnly,
  listOf,
  says,
  text,
  wholeFrom,
} from '../config/schema/strict.ts'

/** So many asks are one list, at most. */
export const MAX_ASKS = 100

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

const headers = entriesOf(
  text('a field name of up to 256 characters', 1, 256, /^[\w!#$%&'*+.^`|~-]+$/),
  // The bytes that a field may hold (RFC 9110, 5.5), each a character.
  text(
    'a value of up to 8192 characters, none of them a control character or above U+00FF',
    0,
    8192,
    /^[\t\u0020-\u007e\u0080-\u00ff]*$/,
  ),
  100,
  'header fields',
)

/** A request as a caller tells of it: what policies would see of it, were it here. */
export const requestDescription = fields({
  method: v.optional(method),
  url,
  ip: v.optional(ip),
  headers: v.optional(headers),
  country: v.optional(text('a country code like "DE"', 2, 2, /^[A-Za-z][A-Za-z\d]$/)),
  asn: v.optional(
    says(
      'the number of an autonomous system, like 64500',
      v.union([
        v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(2 ** 32 - 1)),
        v.pipe(v.string(), v.regex(/^[1-9]\d{0,9}$/)),
      ]),
    ),
  ),
  colo: v.optional(text('the IATA code of a data centre, like "FRA"', 3, 4, /^[A-Za-z\d]+$/)),
})
export type RequestDescription = v.InferOutput<typeof requestDescription>

// A larger number has been rounded where its JSON was read: neighbours would share a quota.
const exact = v.pipe(
  v.number(),
  v.minValue(Number.MIN_SAFE_INTEGER),
  v.maxValue(Number.MAX_SAFE_INTEGER),
)
const keyValue = v.union([v.pipe(v.string(), v.maxLength(1024)), exact])

/** The values of a policy's key, in its order; `null` is a part that is missing. */
export const keyValues = either(
  Array.isArray,
  says('a text of up to 1024 characters, a number, or a list of them', keyValue),
  listOf(
    says('a text of up to 1024 characters, a number, or null', v.nullable(keyValue)),
    16,
    'values of the key',
  ),
)
export type KeyValues = v.InferOutput<typeof keyValues>

const policy = text('the name of a policy; or request, and neither policy nor key', 1, 64)
const plan = text('the name of a plan, of up to 64 characters', 0, 64)
const cost = wholeFrom(0, MAX_UNITS)
const besidePolicy = { request: 'nothing beside policy: one of the two' }
const besideRequest = {
  key: 'nothing beside request, which the key is read from',
  plan: 'nothing beside request, which the plan is read from',
}

/** By a policy and the values of its key, or by a request; with more fields. */
const about = <const E extends v.ObjectEntries>(more: E) => ({
  byPolicy: fields({ policy, key: keyValues, plan: v.optional(plan), ...more }, besidePolicy),
  byRequest: fields({ request: requestDescription, ...more }, besideRequest),
})

const isByRequest = hasOnly('request', 'policy')
const asks = about({
  cost: v.optional(cost),
  mode: v.optional(says('take or peek', v.picklist(['take', 'peek']))),
})
const refunds = about({
  cost: v.optional(cost),
  decidedAt: v.optional(wholeFrom(0, MAX_UNITS, 'of milliseconds: decidedAt of the decision')),
  slot: v.optional(text('slot of the decision', 1, 64, /^[\w-]+$/)),
})
const oneOrMany = <const S extends v.GenericSchema>(one: S, what: string) =>
  either(Array.isArray, one, listOf(one, MAX_ASKS, what))

/** One thing to decide. */
export const ask = either(isByRequest, asks.byPolicy, asks.byRequest)
export type Ask = v.InferOutput<typeof ask>

/** The body of `decide`. */
export const decideBody = oneOrMany(ask, 'asks')

/** What was taken and is not needed. */
export const refund = either(isByRequest, refunds.byPolicy, refunds.byRequest)
export type RefundBody = v.InferOutput<typeof refund>

/** The body of `refund`. */
export const refundBody = oneOrMany(refund, 'things to give back')

/** Whose state of one policy, with more fields. */
function targetWith<const E extends v.ObjectEntries>(more: E) {
  const byKey = fields(
    { key: keyValues, plan: v.optional(plan), ...more },
    { request: 'nothing beside key: one of the two' },
  )
  return either(
    hasOnly('request', 'key'),
    byKey,
    fields({ request: requestDescription, ...more }, besideRequest),
  )
}

/** The body of `look`, `reset` and `unban`. */
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
export const tryBody = fields({ request: requestDescription })
