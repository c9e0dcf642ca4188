import * as v from 'valibot'
import type { FieldSet } from '../../base/field-set.ts'

/**
 * A set of rate limit headers: `draft-11`, `draft-7` or `draft-6` of the IETF's RateLimit fields, GitHub's `x-ratelimit-*`, or the
 * headers `<prefix>Limit`, `<prefix>Remaining` and `<prefix>Reset`. `reset` is the format of the last one: seconds since the epoch
 * (`epoch`), seconds from now (`delta`), or an ISO 8601 time (`iso`). A prefix has up to 64 letters, digits, `_` or `-`.
 */
export type HeaderSet =
  | 'draft-11'
  | 'draft-7'
  | 'draft-6'
  | 'github'
  | { prefix: string; reset: 'epoch' | 'delta' | 'iso' }

export const APART = 'sets that have no field in common'

/** Parses to a list, without a name twice. The feature headerSets checks and replaces the sets other than `draft-11`. */
export const headers = v.pipe(
  v.custom<'off' | HeaderSet | HeaderSet[]>(() => true),
  v.transform(
    (input) =>
      (input === 'off' ? [] : Array.isArray(input) ? input : [input]) as ('draft-11' | FieldSet)[],
  ),
  v.check((sets) => {
    const named = sets.filter((set) => typeof set === 'string')
    return new Set(named).size === named.length
  }, APART),
)
