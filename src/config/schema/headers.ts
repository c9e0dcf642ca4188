import * as v from 'valibot'
import { either, isObject, object, oneOf, pattern } from './shapes.ts'

/** The fields of each set, by what they report. */
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
 * Field sets of a response: `draft-11`, `draft-7`, `draft-6` of the IETF's RateLimit fields; GitHub's `x-ratelimit-*`; or
 * `<prefix>Limit`, `-Remaining`, `-Reset` with the reset as seconds since the epoch, seconds from now, or ISO 8601.
 */
export type HeaderSet = NamedSet | { prefix: string; reset: 'epoch' | 'delta' | 'iso' }

/** The names of the fields that a set with a prefix writes. */
export const prefixedNames = (prefix: string) => ({
  limit: `${prefix}Limit`,
  remaining: `${prefix}Remaining`,
  reset: `${prefix}Reset`,
})

/** The fields that a set writes. */
export const namesOf = (set: HeaderSet): string[] =>
  Object.values(typeof set === 'string' ? fieldNames[set] : prefixedNames(set.prefix))

const names = Object.keys(fieldNames) as NamedSet[]
const set: v.GenericSchema<HeaderSet> = either(
  isObject,
  v.picklist(names, `one of ${names.join(', ')}, an object of prefix and reset, or "off" alone`),
  object({
    prefix: pattern('the beginning of a field name like "X-RateLimit-"', /^[A-Za-z][\w-]{0,63}$/),
    reset: oneOf('epoch', 'delta', 'iso'),
  }),
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
