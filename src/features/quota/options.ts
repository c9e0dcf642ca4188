import * as v from 'valibot'
import { parsedOptions } from '../../core/config/schema/checked.ts'
import { type Policy, policy } from '../../core/config/schema/policy.ts'
import {
  duration,
  type Input,
  type Named,
  named,
  object,
  pattern,
  whole,
} from '../../core/config/schema/shapes.ts'

const fields = () => ({
  /** The path of the endpoint, under `/_sluice/`, which no origin has: `'/_sluice/quota'`. Defaults to that. */
  path: v.optional(
    pattern('a path like "/_sluice/quota"', /^\/_sluice\/(?!v1\/|health$|ready$)[\w-]+$/),
    '/_sluice/quota',
  ),
  /** Requests of one address for the endpoint in a window: a whole number, at least 1. Defaults to 60. */
  limit: v.optional(whole(1), 60),
  /** The window of this limit: a duration such as `'1m'`. Defaults to `'1m'`. */
  window: v.optional(duration, 60_000),
})

/** Options of `quota`. */
export interface QuotaOptions extends Input<ReturnType<typeof fields>>, Named {}

/** The limit on the endpoint itself. Its deadline is that of the configuration. */
type Quota = Omit<Policy, 'deadlineMs'>

const schema = named<QuotaOptions>()(object(fields))

/** @throws {ConfigError} with every problem */
export function parseOptions(options: QuotaOptions): { path: string; limit: Quota } {
  const { path, limit, window } = parsedOptions(schema, options, 'quota')
  return { path, limit: v.parse(policy, { name: 'sluice-quota', limit, window }) }
}
