import * as v from 'valibot'
import { parseDuration } from '../../core/base/duration.ts'
import { type Key, type KeyPart, key } from '../../core/config/schema/key.ts'
import {
  accept,
  type Input,
  named,
  object,
  pattern,
  whole,
} from '../../core/config/schema/shapes.ts'

const PERIODS = [10_000, 60_000]

const shieldFields = <Context>() => ({
  /** Name of the binding in the wrangler configuration, such as `'SHIELD'`. Required. */
  binding: pattern('the name of a binding like "SHIELD"', /^[A-Za-z_]\w*$/),
  /** Requests in a period: a whole number, at least 1. Must equal `limit` in the wrangler configuration. Required. */
  limit: whole(1),
  /** Length of the period: `'10s'` or `'60s'`. Must equal `period` in the wrangler configuration. Required. */
  period: v.pipe(
    v.custom<'10s' | '60s' | '1m'>(
      (input) => PERIODS.includes(parseDuration(input)!),
      '"10s" or "60s"',
    ),
    v.transform((input) => parseDuration(input)!),
  ),
  /** Counts by these key parts: one or a list, except parts of the path and the body. A request without a value for a part is not counted. Defaults to `'ip'`. */
  key: v.optional(key as v.GenericSchema<Key<Context>, KeyPart[]>, 'ip'),
  /** Codes of linter findings to ignore for the shield, one or a list (docs/reference/linter.md). Defaults to none. */
  accept,
})

/**
 * Cloudflare's rate limit binding (`ratelimits` in the wrangler configuration) in front of Redis. It is free, and counts inexactly and in each
 * location separately. Use it against floods, with a limit far above what the policies admit.
 */
export interface ShieldOptions<Context = unknown>
  extends Input<ReturnType<typeof shieldFields<Context>>> {}

export type Shield = v.InferOutput<typeof shield>

const shield = named<ShieldOptions>()(
  v.pipe(
    object(shieldFields, ({ key }, problem) => {
      key?.forEach(({ source }, index) => {
        if (source.startsWith('path')) problem(['key', index], 'a part other than the path')
      })
    }),
    v.transform(({ period, ...rest }) => ({ ...rest, periodMs: period })),
  ),
)

export const settings = <Context>() => ({
  /** Cloudflare's rate limit binding in front of Redis, against floods. Defaults to none. */
  shield: v.optional(shield as v.GenericSchema<ShieldOptions<Context>, Shield>),
})
