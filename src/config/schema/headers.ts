import * as v from 'valibot'
import type { HeaderSet } from '../options.ts'
import { list, object, oneOf, pattern } from './shapes.ts'

export type { HeaderSet }

const prefixed = object({
  prefix: pattern('the beginning of a field name like "X-RateLimit-"', /^[A-Za-z][\w-]{0,63}$/),
  reset: oneOf('epoch', 'delta', 'iso'),
})
const names = ['draft-11', 'draft-7', 'draft-6', 'github'] as const
const named = v.picklist(
  names,
  `one of ${names.join(', ')}, an object of prefix and reset, or "off" alone`,
)

const set = v.lazy(
  (input): v.GenericSchema<unknown, HeaderSet> =>
    typeof input === 'object' && input !== null ? prefixed : named,
)

/** The fields that a set writes. */
export function namesOf(set: HeaderSet): string[] {
  switch (set) {
    case 'draft-11':
    case 'draft-7':
      return ['RateLimit-Policy', 'RateLimit']
    case 'draft-6':
      return ['RateLimit-Policy', 'RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset']
    case 'github':
      return ['limit', 'remaining', 'used', 'reset', 'resource'].map(
        (name) => `x-ratelimit-${name}`,
      )
    default:
      return ['Limit', 'Remaining', 'Reset'].map((name) => set.prefix + name)
  }
}

export const headers = v.pipe(
  v.unknown(),
  v.transform((input) => (input === 'off' ? [] : Array.isArray(input) ? input : [input])),
  v.array(set),
  v.check((sets) => {
    const written = sets.flatMap(namesOf).map((name) => name.toLowerCase())
    return new Set(written).size === written.length
  }, 'sets that have no field in common'),
)

/** Who may read refusals from a page of another origin, parsed. */
export interface Cors {
  /** As browsers write them in `Origin`, or `*`. */
  origins: string[]
  credentials: boolean
}

const origin = v.pipe(
  v.custom<string>(
    (input) =>
      typeof input === 'string' &&
      /^(\*|https?:\/\/[^\s\\/?#@,*]+)$/i.test(input) &&
      (input === '*' || URL.canParse(input)),
    'an origin like "https://app.example.com", or "*"',
  ),
  // Lower case, no default port, Punycode: compared to the letter with what a browser sends.
  v.transform((input) => (input === '*' ? input : new URL(input).origin)),
)

export const cors: v.GenericSchema<unknown, Cors> = object(
  { origins: list(origin), credentials: v.optional(v.boolean('true or false'), false) },
  ({ origins, credentials }, problem) => {
    if (credentials === true && Array.isArray(origins) && origins.includes('*')) {
      problem(['origins'], 'no "*" where credentials may be sent (browsers refuse it)')
    }
  },
)
