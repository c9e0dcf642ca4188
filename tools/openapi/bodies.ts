/** Schemas of the bodies of calls, for the description only. A test compares them with the checks of the Worker (src/api/schema.ts). */
import * as v from 'valibot'
import { MAX_MS } from '../../src/core/base/duration.ts'
import { MAX_UNITS } from '../../src/core/base/units.ts'

const sized = (least: number, most: number) =>
  v.pipe(v.string(), v.minLength(least), v.maxLength(most))
const text = (least: number, most: number, regex: RegExp) =>
  v.pipe(sized(least, most), v.regex(regex))
const whole = (low: number, high = MAX_UNITS) =>
  v.pipe(v.number(), v.integer(), v.minValue(low), v.maxValue(high))
const listOf = <S extends v.GenericSchema>(item: S, most: number) =>
  v.pipe(v.array(item), v.minLength(1), v.maxLength(most))

export const requestDescription = v.strictObject({
  method: v.optional(
    text(
      1,
      32,
      // JSON Schema has no flags.
      /^(?!(?:[Cc][Oo][Nn][Nn][Ee][Cc][Tt]|[Tt][Rr][Aa][Cc][EeKk])$)[\w!#$%&'*+.^`|~-]+$/,
    ),
  ),
  url: v.pipe(
    v.string(),
    v.maxLength(8192),
    v.regex(/^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^\s/?#@\\]+(?:[/?]\S*)?$/),
  ),
  ip: v.optional(v.pipe(v.string(), v.regex(/^[\dA-Fa-f.:]{1,45}$/))),
  headers: v.optional(
    v.pipe(
      v.record(
        text(1, 256, /^[\w!#$%&'*+.^`|~-]+$/),
        text(0, 8192, /^[\t\u0020-\u007e\u0080-\u00ff]*$/),
      ),
      v.maxEntries(100),
    ),
  ),
  body: v.optional(v.string()),
  omitted: v.optional(listOf(v.picklist(['headers', 'query', 'path', 'body']), 4)),
  country: v.optional(text(2, 2, /^[A-Za-z][A-Za-z\d]$/)),
  asn: v.optional(v.union([whole(1, 2 ** 32 - 1), v.pipe(v.string(), v.regex(/^[1-9]\d{0,9}$/))])),
  colo: v.optional(text(3, 4, /^[A-Za-z\d]+$/)),
})

const keyValue = v.union([
  v.pipe(v.string(), v.maxLength(1024)),
  v.pipe(v.number(), v.minValue(Number.MIN_SAFE_INTEGER), v.maxValue(Number.MAX_SAFE_INTEGER)),
])
export const keyValues = v.union([keyValue, listOf(v.nullable(keyValue), 16)])

const policyFields = { policy: sized(1, 64), key: keyValues, plan: v.optional(sized(0, 64)) }
const { key, plan } = policyFields
const limitsFields = { limits: listOf(v.strictTuple([sized(1, 64), keyValues]), 100), plan }
const describedFields = { request: requestDescription }

const about = (more: v.ObjectEntries) =>
  v.union([
    v.union([
      v.strictObject({ ...policyFields, ...more }),
      v.strictObject({ ...limitsFields, ...more }),
    ]),
    v.strictObject({ ...describedFields, ...more }),
  ])

export const ask = about({
  cost: v.optional(whole(0)),
  mode: v.optional(v.picklist(['take', 'peek'])),
  waitMs: v.optional(whole(0, 60_000)),
})

const slot = v.optional(text(1, 64, /^[\w-]+$/))

export const refund = about({
  cost: v.optional(whole(0)),
  decidedAt: v.optional(whole(0)),
  slot,
})

export const settle = about({
  used: v.optional(whole(0)),
  decision: v.looseObject({
    decidedAt: whole(0),
    slot,
    limits: v.array(
      v.looseObject({
        policy: sized(1, 64),
        allowed: v.boolean(),
        cost: whole(0),
        decidedAt: v.optional(whole(0)),
      }),
    ),
  }),
})

const targetWith = (more: v.ObjectEntries) =>
  v.union([
    v.union([
      v.strictObject({ key, plan, ...more }),
      v.strictObject({ subject: text(16, 16, /^[\w-]+$/), plan, ...more }),
    ]),
    v.strictObject({ ...describedFields, ...more }),
  ])

export const target = targetWith({})

const duration = v.union([
  whole(1, MAX_MS),
  v.pipe(v.string(), v.maxLength(32), v.regex(/^\d+(?:\.\d+)? ?(?:ms|s|m|h|d|w)$/)),
])

export const ban = targetWith({ for: duration })
export const override = v.strictObject({ limit: whole(1, Number.MAX_SAFE_INTEGER), for: duration })
export const tryOut = v.strictObject(describedFields)
