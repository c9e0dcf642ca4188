import * as v from 'valibot'
import { choice, either, isObject, object, oneOf, pattern } from './shapes.ts'

/** The header names of each set, by the value that they report. */
export const fieldNames = {
  'draft-11': { policy: 'RateLimit-Policy', state: 'RateLimit' },
  'draft-7': { policy: 'RateLimit-Policy', state: 'RateLimit' },
  'draft-6': {
    policy: 'RateLimit-Policy',
    limit: 'RateLimit-Limit',
    remaining: 'RateLimit-Remaining',
    reset: 'RateLimit-Reset',
  },
  github: {
    limit: 'x-ratelimit-limit',
    remaining: 'x-ratelimit-remaining',
    used: 'x-ratelimit-used',
    reset: 'x-ratelimit-reset',
    resource: 'x-ratelimit-resource',
  },
}
type NamedSet = keyof typeof fieldNames

/**
 * A set of rate limit headers: `draft-11`, `draft-7` or `draft-6` of the IETF's RateLimit fields, GitHub's `x-ratelimit-*`, or the
 * headers `<prefix>Limit`, `<prefix>Remaining` and `<prefix>Reset`. `reset` is the format of the last one: seconds since the epoch
 * (`epoch`), seconds from now (`delta`), or an ISO 8601 time (`iso`). A prefix has up to 64 letters, digits, `_` or `-`.
 */
export type HeaderSet = NamedSet | { prefix: string; reset: 'epoch' | 'delta' | 'iso' }

/** The header names of a set with a prefix. */
export const prefixedNames = (prefix: string) => ({
  limit: `${prefix}Limit`,
  remaining: `${prefix}Remaining`,
  reset: `${prefix}Reset`,
})

/** The header names of a set. */
export const namesOf = (set: HeaderSet): string[] =>
  Object.values(typeof set === 'string' ? fieldNames[set] : prefixedNames(set.prefix))

const names = Object.keys(fieldNames) as NamedSet[]
const set: v.GenericSchema<HeaderSet> = either(
  isObject,
  choice(
    names,
    `one of ${names.join(', ')}, an object with prefix and reset, or "off" outside of a list`,
  ),
  object(() => ({
    prefix: pattern('the start of a header name like "X-RateLimit-"', /^[A-Za-z][\w-]{0,63}$/),
    reset: oneOf('epoch', 'delta', 'iso'),
  })),
)

export const headers = v.pipe(
  v.custom<'off' | HeaderSet | HeaderSet[]>(() => true),
  v.transform((input) => (input === 'off' ? [] : Array.isArray(input) ? input : [input])),
  v.array(set),
  v.check((sets) => {
    const written = sets.flatMap(namesOf).map((name) => name.toLowerCase())
    return new Set(written).size === written.length
  }, 'sets that have no field in common'),
)
