import * as v from 'valibot'
import { either, isObject, list, object, whole } from './shapes.ts'

/**
 * One part of what a quota is counted by. `ip` is the address that Cloudflare saw, by default IPv4 by address and IPv6 by /64;
 * `country`, `asn`, `colo` are what Cloudflare knows of it. `jwt:<claim>` is a claim of a verified token, `api-key` a key
 * (`jwt` and `apiKeys` of the configuration). `path:<name>` is a parameter of the policy's path pattern. The client chooses the
 * values of header, cookie and query. A function is given Hono's context.
 */
export type KeySource<Context = unknown> =
  | 'ip'
  | { ip: { v4?: number; v6?: number } }
  | (typeof plain)[number]
  | `path:${string}`
  | `header:${string}`
  | `cookie:${string}`
  | `query:${string}`
  | `jwt:${string}`
  | ((context: Context) => KeyResult | Promise<KeyResult>)

/** What a key function finds; nothing, null or an empty text if the request lacks it. */
export type KeyResult = string | number | undefined | null

/** Whose quota: one part, or several that count together. */
export type Key<Context = unknown> = KeySource<Context> | KeySource<Context>[]

/** A parsed part of a key. `v4` and `v6` are prefix lengths; header names are in lower case. */
export type KeyPart =
  | { source: 'ip'; v4: number; v6: number }
  | { source: (typeof plain)[number] }
  | { source: 'header' | 'cookie' | 'query'; name: string }
  | { source: 'jwt' | 'path-parameter'; name: string }
  | { source: 'function'; read: (context: unknown) => unknown }

const plain = ['path', 'method', 'host', 'country', 'asn', 'colo', 'api-key', 'global'] as const
const withName =
  /^(?:(header):([\w!#$%&'*+.^`|~-]+)|(cookie):([\w!#$%&'*+.^`|~-]+)|(query|jwt):(\S+)|(path):(\w+))$/

const EXPECTED = `"ip", { ip: { v4, v6 } }, ${plain.map((name) => `"${name}"`).join(', ')}, "path:<parameter>", "header:<name>", "cookie:<name>", "query:<name>", "jwt:<claim>", or a function`

const byText = v.pipe(
  v.custom<KeySource & string>(
    (input) =>
      typeof input === 'string' &&
      (input === 'ip' || plain.some((name) => name === input) || withName.test(input)),
    EXPECTED,
  ),
  v.transform((input): KeyPart => {
    if (input === 'ip') return { source: 'ip', v4: 32, v6: 64 }
    const [source, name] = (withName.exec(input)?.slice(1) ?? []).filter(
      (part) => part !== undefined,
    )
    if (!source) return { source: input as (typeof plain)[number] }
    if (source === 'header') return { source, name: name!.toLowerCase() }
    if (source === 'path') return { source: 'path-parameter', name: name! }
    return { source: source as 'cookie' | 'query', name: name! }
  }),
)

const byAddress = v.pipe(
  object({
    ip: object({ v4: v.optional(whole(1, 32), 32), v6: v.optional(whole(1, 128), 64) }),
  }),
  v.transform(({ ip }): KeyPart => ({ source: 'ip', ...ip })),
)

const isFunction = (input: unknown) => typeof input === 'function'
const byFunction = v.pipe(
  v.custom<KeySource & ((context: unknown) => unknown)>(isFunction),
  v.transform((read): KeyPart => ({ source: 'function', read })),
)

const part: v.GenericSchema<KeySource, KeyPart> = either(
  isFunction,
  either(isObject, byText, byAddress) as v.GenericSchema<KeySource, KeyPart>,
  byFunction,
)

export const key: v.GenericSchema<Key, KeyPart[]> = list(part)

/** A key of one part. */
export const oneKey: v.GenericSchema<KeySource, KeyPart> = v.pipe(
  key as v.GenericSchema<KeySource, KeyPart[]>,
  v.check((parts) => parts.length === 1, 'one part'),
  v.transform((parts) => parts[0]!),
)

export type MissingKeyOptions<Context = unknown> =
  | 'share'
  | 'skip'
  | 'refuse'
  | { key: Key<Context> }

/** What a policy does about a request that has no value for a part of its key. */
export const onMissingKey = either(
  isObject,
  v.picklist(['share', 'skip', 'refuse'], 'one of share, skip, refuse, { key }'),
  object({ key }),
)
export type OnMissingKey = v.InferOutput<typeof onMissingKey>
