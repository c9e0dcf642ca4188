/** Schemas of the bodies of the decision API (docs/reference/decision-api.md). Each message describes the expected value. */
import * as v from 'valibot'
import { isAmbiguous } from '../core/base/ambiguous-target.ts'
import { MAX_MS, parseDuration } from '../core/base/duration.ts'
import { networkRange } from '../core/base/ip.ts'
import { MAX_UNITS } from '../core/base/units.ts'
import {
  either,
  first,
  type Input,
  isObject,
  listOf,
  type Named,
  named,
  object,
  says,
  text,
  units,
  whole,
} from '../core/config/schema/shapes.ts'
import type { SettledDecision } from '../core/decide/operate.ts'
import type { KeyValues } from '../core/program/explicit-key.ts'

const MAX_ASKS = 100

/** The maximum number of reported errors of one body. */
export const MAX_PROBLEMS = 20

const MAX_HEADERS = 100

const MAX_OVERRIDE_MS = 3_653 * 86_400_000

// Excludes the methods that Request forbids (Fetch, 2.2.1), in any case.
const method = text(
  'a method of up to 32 characters, except CONNECT, TRACE and TRACK',
  1,
  32,
  /^(?!(?:[Cc][Oo][Nn][Nn][Ee][Cc][Tt]|[Tt][Rr][Aa][Cc][EeKk])$)[\w!#$%&'*+.^`|~-]+$/,
)

const url = says(
  'an absolute http or https URL of up to 8192 characters, without user name, password, spaces, fragment, and in its path without \\ and segments . and ..',
  v.pipe(
    v.string(),
    v.maxLength(8192),
    v.regex(/^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^\s/?#@\\]+(?:[/?]\S*)?$/),
    v.check((input) => URL.canParse(input) && !isAmbiguous(input)),
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
      // The bytes that a field may contain (RFC 9110, 5.5), one character each.
      text(
        'a value of up to 8192 characters, without control characters or characters above U+00FF',
        0,
        8192,
        /^[\t\u0020-\u007e\u0080-\u00ff]*$/,
      ),
    ),
    v.maxEntries(MAX_HEADERS),
  ),
)

const requestFields = () => ({
  /** Defaults to `GET`. */
  method: v.optional(method),
  /** Absolute, `http` or `https`, up to 8192 characters. */
  url,
  /** The client's address. Without it, the key part `ip` is missing. */
  ip: v.optional(ip),
  /** Up to 100 fields, each value up to 8192 characters. */
  headers: v.optional(headers),
  /** The body, as it was received, with its `Content-Type` in `headers`. Without it, the body of a method other than GET and HEAD counts as unreadable. Needs `bodies`. */
  body: v.optional(v.string('a text')),
  /** The parts of the request that were too long: of these, a field that is not in `headers`, the whole query, path or body is unreadable, and not missing. */
  omitted: v.optional(
    listOf(v.picklist(['headers', 'query', 'path', 'body']), 4, 'names of omitted parts'),
  ),
  /** The client's country, as ISO 3166-1 alpha-2. */
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
  /** The IATA code of Cloudflare's data center. */
  colo: v.optional(text('the IATA code of a data centre, like "FRA"', 3, 4, /^[A-Za-z\d]+$/)),
})

/** A description of a request: the properties that policies can use. */
export interface RequestDescription extends Input<ReturnType<typeof requestFields>>, Named {}
export const requestDescription = named<RequestDescription>()(object(requestFields))

// JSON.parse rounds larger numbers, so that different keys would share a quota.
const exact = v.pipe(
  v.number(),
  v.minValue(Number.MIN_SAFE_INTEGER),
  v.maxValue(Number.MAX_SAFE_INTEGER),
)

export type { KeyValue, KeyValues } from '../core/program/explicit-key.ts'

const keyValue = v.union([v.pipe(v.string(), v.maxLength(1024)), exact])

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
  policy: text('the name of a policy (or send limits or request instead of policy and key)', 1, 64),
  key: keyValues,
  plan: v.optional(text('the name of a plan, of up to 64 characters', 0, 64)),
}
const describedFields = { request: requestDescription }
const limitsFields = {
  limits: listOf(
    says(
      '["the name of a policy", a key]',
      v.strictTuple([
        text('the name of a policy', 1, 64),
        keyValues,
      ]) as v.GenericSchema as v.GenericSchema<[policy: string, key: KeyValues]>,
    ),
    MAX_ASKS,
    'limits',
  ),
  plan: policyFields.plan,
}
const onlyOneOf = 'nothing (send only one of policy, limits and request)'
const besidePolicy = { request: onlyOneOf, limits: onlyOneOf }
const besideLimits = { request: onlyOneOf, key: 'nothing (each limit has its key)' }
const besideRequest = {
  limits: onlyOneOf,
  key: 'nothing (the key is read from request)',
  plan: 'nothing (the plan is read from request)',
}

/** One policy with an explicit key. Its `match`, and the lists `allow` and `deny`, are ignored. */
export interface ByPolicy extends Input<typeof policyFields>, Named {}

/** Several policies with explicit keys: all are charged, or none. */
export interface ByLimits extends Input<typeof limitsFields>, Named {}

/** All policies that apply to a request, as in the gateway. */
export interface ByRequest extends Input<typeof describedFields>, Named {}

type About<More> = (ByPolicy & More) | (ByLimits & More) | (ByRequest & More)

/** Returns a check that an object has one field and not another. */
const hasOnly = (field: string, not: string) => (input: unknown) =>
  isObject(input) && Object.hasOwn(input, field) && !Object.hasOwn(input, not)

/** The schema of an ask by policy and key, by limits, or by request, with more fields. */
const about = <More>(more: v.ObjectEntries) =>
  either(
    hasOnly('request', 'policy'),
    either(
      hasOnly('limits', 'policy'),
      object(() => ({ ...policyFields, ...more }), undefined, besidePolicy),
      object(() => ({ ...limitsFields, ...more }), undefined, besideLimits),
    ),
    object(() => ({ ...describedFields, ...more }), undefined, besideRequest),
  ) as v.GenericSchema<unknown> as v.GenericSchema<About<More>>

const askFields = {
  /** Whole units, from 0 to 2^51. Defaults to the cost by the policy. With `request`, it applies to every policy that applies. */
  cost: v.optional(whole(0)),
  /** `take` charges the cost, `peek` charges nothing. Defaults to `take`. */
  mode: v.optional(says('take or peek', v.picklist(['take', 'peek']))),
  /** The longest time for which the call may wait for its turn, ms, at most `wait` of the policies. Defaults to 500. */
  waitMs: v.optional(whole(0, 60_000, 'of milliseconds')),
}
interface AskOptions extends Input<typeof askFields>, Named {}

/** A decision to make. */
export type Ask = About<AskOptions>
export const ask = about<AskOptions>(askFields)

const refundFields = {
  /** The units to refund. Defaults to the default cost of an ask. */
  cost: v.optional(whole(0)),
  /** `decidedAt` of the decision, in ms since the epoch. */
  decidedAt: v.optional(whole(0, MAX_UNITS, 'of milliseconds: decidedAt of the decision')),
  /** `slot` of the decision. */
  slot: v.optional(text('slot of the decision', 1, 64, /^[\w-]+$/)),
}

interface RefundAskOptions extends Input<typeof refundFields>, Named {}

/** A charge to refund. */
export type RefundAsk = About<RefundAskOptions>
export const refund = about<RefundAskOptions>(refundFields)

const settleFields = {
  /** The units that each limit keeps of its charge. More than the charge are charged, and never refused. Defaults to the charge. */
  used: v.optional(whole(0)),
  /** The decision, as it was answered. */
  decision: says(
    'the decision, as it was answered',
    v.looseObject({
      decidedAt: whole(0),
      slot: refundFields.slot,
      limits: v.array(
        v.looseObject({
          policy: policyFields.policy,
          allowed: v.boolean(),
          cost: whole(0),
          decidedAt: v.optional(whole(0)),
        }),
      ),
    }),
  ) as v.GenericSchema as v.GenericSchema<SettledDecision>,
}

interface SettleAskOptions extends Input<typeof settleFields>, Named {}

/** A charge to settle. */
export type SettleAsk = About<SettleAskOptions>
export const settle = about<SettleAskOptions>(settleFields)

const oneOrMany = <I, O>(one: v.GenericSchema<I, O>, what: string) =>
  either(Array.isArray, one, listOf(one, MAX_ASKS, what))

export const decideBody = oneOrMany(ask, 'asks')
export const refundBody = oneOrMany(refund, 'refunds')
export const settleBody = oneOrMany(settle, 'charges')

const subjectFields = {
  /** As `GET /stats` reports it, by default. */
  subject: text('a subject: 16 letters, digits, "-" or "_"', 16, 16, /^[\w-]+$/),
  plan: policyFields.plan,
}

/** The schema of a target: the key, the subject or the request whose state of one policy is meant, with more fields. */
function targetWith<const E extends v.ObjectEntries>(more: E) {
  const { key, plan } = policyFields
  const onlyOne = 'nothing (send only one of key, subject and request)'
  const besideOther = { key: onlyOne, subject: onlyOne, request: onlyOne }
  return either(
    hasOnly('request', 'key'),
    either(
      hasOnly('subject', 'key'),
      object(() => ({ key, plan, ...more }), undefined, besideOther),
      object(() => ({ ...subjectFields, ...more }), undefined, besideOther),
    ),
    object(() => ({ ...describedFields, ...more }), undefined, {
      ...besideOther,
      ...besideRequest,
    }),
  )
}

/** The body of `peek`, `reset` and `unban`. */
export const targetBody = targetWith({})
export type Target = v.InferOutput<typeof targetBody>

const duration = says(
  'a duration like "1h", or whole milliseconds',
  v.pipe(
    v.union([
      v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MAX_MS)),
      v.pipe(v.string(), v.maxLength(32), v.regex(/^\d+(?:\.\d+)? ?(?:ms|s|m|h|d|w)$/)),
    ]),
    v.check((input) => parseDuration(input) !== undefined),
    v.transform((input) => parseDuration(input)!),
  ),
)

/** The body of `ban`. `for` parses to milliseconds. */
export const banBody = targetWith({ for: duration })

/** The body of `PUT /policies/{name}/keys/{key}/limit`. `for` parses to milliseconds. */
const overrideFields = {
  /** Whole units, at least 1, within the bounds of `limit` of the policy. */
  limit: units,
  /** How long the limit is in force: a duration such as `'30d'`, or whole milliseconds. At most 10 years. */
  for: v.pipe(duration, v.maxValue(MAX_OVERRIDE_MS, 'a duration of at most 10 years')),
}

/** A limit for one key. */
export interface KeyLimit extends Input<typeof overrideFields>, Named {}
export const overrideBody = object(() => overrideFields)
export const tryBody = object(() => describedFields)
