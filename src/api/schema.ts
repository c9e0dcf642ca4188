/** The bodies of the decision API. Each message describes the expected value. tools/openapi/bodies.ts describes them for readers. */
import { isAmbiguous } from '../core/base/ambiguous-target.ts'
import { type Duration, parseDuration } from '../core/base/duration.ts'
import { networkRange } from '../core/base/ip.ts'
import { isObject } from '../core/base/json.ts'
import { MAX_UNITS } from '../core/base/units.ts'
import type { SettledDecision } from '../core/decide/operate.ts'
import type { KeyValue, KeyValues } from '../core/program/explicit-key.ts'
import type { Fields, Shape, Shapes } from './shapes.ts'
import { either, fits, listOf, object, oneOf, optional, text, whole } from './shapes.ts'

const MAX_ASKS = 100
const MAX_HEADERS = 100
const MAX_OVERRIDE_MS = 3_653 * 86_400_000

// Excludes the methods that Request forbids (Fetch, 2.2.1), in any case.
const method = text(
  'a method of up to 32 characters, except CONNECT, TRACE and TRACK',
  /^(?!(?:CONNECT|TRACE|TRACK)$)[\w!#$%&'*+.^`|~-]{1,32}$/i,
)

const url = text(
  'an absolute http or https URL of up to 8192 characters, without user name, password, spaces, fragment, and in its path without \\ and segments . and ..',
  /^(?=.{0,8192}$)https?:\/\/[^\s/?#@\\]+(?:[/?]\S*)?$/i,
  (input) => URL.canParse(input) && !isAmbiguous(input),
)

const ip = text(
  'an IPv4 or IPv6 address',
  /^[\dA-F.:]{1,45}$/i,
  (input) => networkRange(input) !== undefined,
)

const fieldName = text('a field name of up to 256 characters', /^[\w!#$%&'*+.^`|~-]{1,256}$/)

// The bytes that a field may contain (RFC 9110, 5.5), one character each.
const fieldValue = text(
  'a value of up to 8192 characters, without control characters or characters above U+00FF',
  /^[\t\u0020-\u007e\u0080-\u00ff]{0,8192}$/,
)

const headers: Shape<Record<string, string>> = (input, report, path) => {
  const fields = isObject(input) ? Object.entries(input) : undefined
  if (!fields || fields.length > MAX_HEADERS)
    report(path, `an object of up to ${MAX_HEADERS} header fields`)
  else
    for (const [name, value] of fields) {
      fieldName(name, (at, expected) => report(at, expected, true), [...path, name])
      fieldValue(value, report, [...path, name])
    }
  return input as Record<string, string>
}

const asNumber = 'the number of an autonomous system, like 64500'

const requestFields = {
  /** Defaults to `GET`. */
  method: optional(method),
  /** Absolute, `http` or `https`, up to 8192 characters. */
  url,
  /** The client's address. Without it, the key part `ip` is missing. */
  ip: optional(ip),
  /** Up to 100 fields, each value up to 8192 characters. */
  headers: optional(headers),
  /** The body, as it was received, with its `Content-Type` in `headers`. Without it, the body of a method other than GET and HEAD counts as unreadable. Needs `bodies`. */
  body: optional(text('a text', /^/)),
  /** The parts of the request that were too long: of these, a field that is not in `headers`, the whole query, path or body is unreadable, and not missing. */
  omitted: optional(
    listOf(oneOf('headers', 'query', 'path', 'body'), 4, '1 to 4 names of omitted parts'),
  ),
  /** The client's country, as ISO 3166-1 alpha-2. */
  country: optional(text('a country code like "DE"', /^[A-Z][A-Z\d]$/i)),
  /** The number of the client's autonomous system. */
  asn: optional(
    either(
      (input) => typeof input === 'string',
      fits<number>(asNumber, (input) => Number.isInteger(input) && input > 0 && input < 2 ** 32),
      text(asNumber, /^[1-9]\d{0,9}$/),
    ),
  ),
  /** The IATA code of Cloudflare's data center. */
  colo: optional(text('the IATA code of a data centre, like "FRA"', /^[A-Z\d]{3,4}$/i)),
}

/** A description of a request: the properties that policies can use. */
export interface RequestDescription extends Fields<typeof requestFields> {}
export const requestDescription: Shape<RequestDescription> = object(requestFields)

export type { KeyValue, KeyValues } from '../core/program/explicit-key.ts'

// JSON.parse rounds larger numbers, so that different keys would share a quota.
const isKeyValue = (input: unknown) =>
  typeof input === 'number'
    ? Math.abs(input) <= Number.MAX_SAFE_INTEGER
    : typeof input === 'string' && input.length <= 1024

export const keyValues: Shape<KeyValues> = either(
  Array.isArray,
  fits<KeyValue>('a text of up to 1024 characters, a number, or a list of them', isKeyValue),
  listOf(
    fits<KeyValue | null>(
      'a text of up to 1024 characters, a number, or null',
      (input) => input === null || isKeyValue(input),
    ),
    16,
    '1 to 16 values of the key',
  ),
)

const policyFields = {
  policy: text(
    'the name of a policy (or send limits or request instead of policy and key)',
    /^.{1,64}$/s,
  ),
  key: keyValues,
  plan: optional(text('the name of a plan, of up to 64 characters', /^.{0,64}$/s)),
}
const describedFields = { request: requestDescription }
const policyName = text('the name of a policy', /^.{1,64}$/s)
const policyAndKey: Shape<readonly [policy: string, key: KeyValues]> = (input, report, path) => {
  const expected = '["the name of a policy", a key]'
  if (!Array.isArray(input)) report(path, expected)
  else {
    policyName(input[0], report, [...path, 0])
    keyValues(input[1], report, [...path, 1])
    if (input.length > 2) report([...path, 2], expected)
  }
  return input as [string, KeyValues]
}
const limitsFields = {
  limits: listOf(policyAndKey, MAX_ASKS, `1 to ${MAX_ASKS} limits`),
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
export interface ByPolicy extends Fields<typeof policyFields> {}

/** Several policies with explicit keys: all are charged, or none. */
export interface ByLimits extends Fields<typeof limitsFields> {}

/** All policies that apply to a request, as in the gateway. */
export interface ByRequest extends Fields<typeof describedFields> {}

type About<More> = (ByPolicy & More) | (ByLimits & More) | (ByRequest & More)

const hasOnly = (field: string, not: string) => (input: unknown) =>
  isObject(input) && Object.hasOwn(input, field) && !Object.hasOwn(input, not)

/** An ask by policy and key, by limits, or by request, with more fields. */
const about = <More extends Shapes>(more: More) =>
  either(
    hasOnly('request', 'policy'),
    either(
      hasOnly('limits', 'policy'),
      object({ ...policyFields, ...more }, besidePolicy),
      object({ ...limitsFields, ...more }, besideLimits),
    ),
    object({ ...describedFields, ...more }, besideRequest),
  ) as Shape<unknown> as Shape<About<Fields<More>>>

const askFields = {
  /** Whole units, from 0 to 2^51. Defaults to the cost by the policy. With `request`, it applies to every policy that applies. */
  cost: optional(whole(0)),
  /** `take` charges the cost, `peek` charges nothing. Defaults to `take`. */
  mode: optional(oneOf('take', 'peek')),
  /** The longest time for which the call may wait for its turn, ms, at most `wait` of the policies. Defaults to 500. */
  waitMs: optional(whole(0, 60_000, 'of milliseconds from 0 to 60000')),
}
interface AskOptions extends Fields<typeof askFields> {}

/** A decision to make. */
export type Ask = About<AskOptions>
export const ask = about(askFields)

const refundFields = {
  /** The units to refund. Defaults to the default cost of an ask. */
  cost: optional(whole(0)),
  /** `decidedAt` of the decision, in ms since the epoch. */
  decidedAt: optional(whole(0, MAX_UNITS, 'of milliseconds: decidedAt of the decision')),
  /** `slot` of the decision. */
  slot: optional(text('slot of the decision', /^[\w-]{1,64}$/)),
}

export type RefundAsk = About<Fields<typeof refundFields>>
export const refund = about(refundFields)

const asAnswered = 'the decision, as it was answered'
const charge = {
  policy: policyFields.policy,
  allowed: fits<boolean>(asAnswered, (input) => typeof input === 'boolean'),
  cost: whole(0),
  decidedAt: optional(whole(0)),
}
const charged = {
  decidedAt: whole(0),
  slot: refundFields.slot,
  limits: listOf(object(charge, null, asAnswered), Infinity, asAnswered, 0),
}
const settleFields = {
  /** The units that each limit keeps of its charge. More than the charge are charged, and never refused. Defaults to the charge. */
  used: optional(whole(0)),
  /** The decision, as it was answered. */
  decision: object(charged, null, asAnswered) satisfies Shape<SettledDecision>,
}

export type SettleAsk = About<Fields<typeof settleFields>>
export const settle = about(settleFields)

const oneOrMany = <T>(one: Shape<T>, what: string): Shape<T | T[]> =>
  either(Array.isArray, one, listOf(one, MAX_ASKS, `1 to ${MAX_ASKS} ${what}`))

export const decideBody = oneOrMany(ask, 'asks')
export const refundBody = oneOrMany(refund, 'refunds')
export const settleBody = oneOrMany(settle, 'charges')

const subjectFields = {
  /** As `GET /stats` reports it, by default. */
  subject: text('a subject: 16 letters, digits, "-" or "_"', /^[\w-]{16}$/),
  plan: policyFields.plan,
}

/** A target: the key, the subject or the request whose state of one policy is meant, with more fields. */
function targetWith<More extends Shapes>(more: More) {
  const { key, plan } = policyFields
  const onlyOne = 'nothing (send only one of key, subject and request)'
  const besideOther = { key: onlyOne, subject: onlyOne, request: onlyOne }
  return either(
    hasOnly('request', 'key'),
    either(
      hasOnly('subject', 'key'),
      object({ key, plan, ...more }, besideOther),
      object({ ...subjectFields, ...more }, besideOther),
    ),
    object({ ...describedFields, ...more }, { ...besideOther, ...besideRequest }),
  )
}

/** The body of `peek`, `reset` and `unban`. */
export const targetBody = targetWith({})
export type Target = ReturnType<typeof targetBody>

/** A duration, as milliseconds. */
const duration: Shape<number> = (input, report, path) => {
  const ms = typeof input === 'string' && input.length > 32 ? undefined : parseDuration(input)
  if (ms === undefined) report(path, 'a duration like "1h", or whole milliseconds')
  return ms!
}

export const banBody = targetWith({ for: duration })

/** A limit for one key. */
export interface KeyLimit {
  /** Whole units, at least 1, within the bounds of `limit` of the policy. */
  limit: number
  /** How long the limit is in force: a duration such as `'30d'`, or whole milliseconds. At most 10 years. */
  for: Duration
}

/** The body of `PUT /policies/{name}/keys/{key}/limit`. */
export const overrideBody = object({
  limit: whole(1, Number.MAX_SAFE_INTEGER),
  for: ((input, report, path) => {
    const ms = duration(input, report, path)
    if (ms > MAX_OVERRIDE_MS) report(path, 'a duration of at most 10 years')
    return ms
  }) satisfies Shape<number>,
})
export const tryBody = object(describedFields)
