import * as v from 'valibot'
import { list, object, whole } from './shapes.ts'

/** A parsed part of a key. `v4` and `v6` are prefix lengths; header names are in lower case. */
export type KeyPart =
  | { source: 'ip'; v4: number; v6: number }
  | { source: (typeof plain)[number] }
  | { source: 'header' | 'cookie' | 'query'; name: string }
  | { source: 'jwt' | 'path-parameter'; name: string }
  | { source: 'function'; read: (context: unknown) => unknown }

const plain = ['path', 'method', 'host', 'country', 'asn', 'colo', 'api-key', 'global'] as const
const named =
  /^(?:(header):([\w!#$%&'*+.^`|~-]+)|(cookie):([\w!#$%&'*+.^`|~-]+)|(query|jwt):(\S+)|(path):(\w+))$/

const EXPECTED = `"ip", { ip: { v4, v6 } }, ${plain.map((name) => `"${name}"`).join(', ')}, "path:<parameter>", "header:<name>", "cookie:<name>", "query:<name>", "jwt:<claim>", or a function`

const prefixes = object({ v4: v.optional(whole(1, 32), 32), v6: v.optional(whole(1, 128), 64) })

const text = v.pipe(
  v.custom<string>(
    (input) =>
      typeof input === 'string' &&
      (input === 'ip' || plain.some((name) => name === input) || named.test(input)),
    EXPECTED,
  ),
  v.transform((input): KeyPart => {
    if (input === 'ip') return { source: 'ip', v4: 32, v6: 64 }
    const [source, name] = (named.exec(input)?.slice(1) ?? []).filter((part) => part !== undefined)
    if (!source) return { source: input as (typeof plain)[number] }
    if (source === 'header') return { source, name: name!.toLowerCase() }
    if (source === 'path') return { source: 'path-parameter', name: name! }
    return { source: source as 'cookie' | 'query', name: name! }
  }),
)

const part = v.lazy((input): v.GenericSchema<unknown, KeyPart> => {
  if (typeof input === 'function') {
    return v.pipe(
      v.custom<(context: unknown) => unknown>((input) => typeof input === 'function'),
      v.transform((read): KeyPart => ({ source: 'function', read })),
    )
  }
  return typeof input === 'object' && input !== null
    ? v.pipe(
        object({ ip: prefixes }),
        v.transform(({ ip }): KeyPart => ({ source: 'ip', ...ip })),
      )
    : text
})

export const key = list(part)

const otherKey = object({ key })

/** What a policy does about a request that has no value for a part of its key. */
export type OnMissingKey = 'share' | 'skip' | 'refuse' | { key: KeyPart[] }

export const onMissingKey = v.lazy(
  (input): v.GenericSchema<unknown, OnMissingKey> =>
    typeof input === 'object' && input !== null
      ? otherKey
      : v.picklist(['share', 'skip', 'refuse'], 'one of share, skip, refuse, { key }'),
)
