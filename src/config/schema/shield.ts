import * as v from 'valibot'
import { parseDuration } from '../../base/duration.ts'
import { type Key, type KeyPart, key } from './key.ts'
import { accept, type Input, named, object, pattern, whole } from './shapes.ts'

const PERIODS = [10_000, 60_000]

const fields = <Context>() => ({
  /** The name of the binding. */
  binding: pattern('the name of a binding like "SHIELD"', /^[A-Za-z_]\w*$/),
  /** Requests in a period, as in wrangler.toml. */
  limit: whole(1),
  /** As in wrangler.toml. */
  period: v.pipe(
    v.custom<'10s' | '60s' | '1m'>(
      (input) => PERIODS.includes(parseDuration(input)!),
      '"10s" or "60s"',
    ),
    v.transform((input) => parseDuration(input)!),
  ),
  /** What it counts by, without the path. A request that lacks a part is not counted. Defaults to `'ip'`. */
  key: v.optional(key as v.GenericSchema<Key<Context>, KeyPart[]>, 'ip'),
  /** Findings of `npm run check` that are intended (docs/reference/linter.md). */
  accept,
})

/**
 * A rate limit of Cloudflare's own in front of Redis, by its binding (`[[ratelimits]]` in wrangler.toml), which counts at
 * each location by itself, inexactly, and costs nothing. It stops floods, far above what policies admit.
 */
export interface ShieldOptions<Context = unknown>
  extends Input<ReturnType<typeof fields<Context>>> {}

/** The same, parsed. */
export type Shield = v.InferOutput<typeof shield>

export const shield = named<ShieldOptions>()(
  v.pipe(
    object(fields(), ({ key }, problem) => {
      key?.forEach(({ source }, index) => {
        if (source.startsWith('path')) problem(['key', index], 'nothing of the path')
      })
    }),
    v.transform(({ period, ...rest }) => ({ ...rest, periodMs: period })),
  ),
)
