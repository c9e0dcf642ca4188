import * as v from 'valibot'
import { isObject } from '../../base/json.ts'
import { either, list, object, pattern, whole } from './shapes.ts'

/**
 * One part of a key, which is what a quota counts by.
 * - `ip`: the client address (`clientAddress` of the configuration). IPv4 counts by address and IPv6 by /64; `v4` (1 to 32) and `v6` (1 to 128)
 *   change these prefix lengths.
 * - `country`, `asn`, `colo`: what Cloudflare knows about the address.
 * - `ja4`, `verifiedBot`: the TLS fingerprint, and the category of a verified bot, with Bot Management of Cloudflare.
 * - `jwt:<claim>`: a claim of a verified token (`jwt()`).
 * - `api-key`: an API key (`apiKeys` of the configuration).
 * - `path:<name>`: a parameter of the policy's own `match.path`.
 * - `body:<path>`: a value of a JSON body, such as `body:params.name` (`bodies()`). `{ digest: 'body:<path>' }` is the SHA-256 of a value of
 *   any kind, also of an object or a list, in canonical JSON (RFC 8785).
 * - `header:<name>`, `cookie:<name>`, `query:<name>`: a value that the client chooses.
 * - `global`: one quota for all clients.
 * - a function of Hono's context that returns a string or a number.
 */
export type KeySource<Context = unknown> =
  | 'ip'
  | { ip: { v4?: number; v6?: number } }
  | { digest: `body:${string}` }
  | (typeof plain)[number]
  | `path:${string}`
  | `header:${string}`
  | `cookie:${string}`
  | `query:${string}`
  | `jwt:${string}`
  | `body:${string}`
  | ((context: Context) => KeyResult | Promise<KeyResult>)

/** The result of a key function. `undefined`, `null` or an empty string means that the part is missing. */
export type KeyResult = string | number | undefined | null

/** One key part, or a list of parts. A quota counts by the combination of a list. */
export type Key<Context = unknown> = KeySource<Context> | KeySource<Context>[]

/** A value of the body; with `digest`, the digest of a value of any kind. */
export interface BodyPart {
  source: 'body'
  name: string
  digest?: true
}

/** A parsed part of a key. `v4` and `v6` are prefix lengths; header names are in lower case. */
export type KeyPart =
  | { source: 'ip'; v4: number; v6: number }
  | { source: (typeof plain)[number] }
  | { source: 'header' | 'cookie' | 'query'; name: string }
  | { source: 'jwt' | 'path-parameter'; name: string }
  | BodyPart
  | { source: 'function'; read: (context: unknown) => unknown }

const plain = [
  'path',
  'method',
  'host',
  'country',
  'asn',
  'colo',
  'ja4',
  'verifiedBot',
  'api-key',
  'global',
] as const
const withName =
  /^(?:(header):([\w!#$%&'*+.^`|~-]+)|(cookie):([\w!#$%&'*+.^`|~-]+)|(query|jwt|body):(\S+)|(path):(\w+))$/

const EXPECTED = `"ip", { ip: { v4, v6 } }, ${plain.map((name) => `"${name}"`).join(', ')}, "path:<parameter>", "header:<name>", "cookie:<name>", "query:<name>", "jwt:<claim>", "body:<path>", { digest: "body:<path>" }, or a function`

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
  object(() => ({
    ip: object(() => ({ v4: v.optional(whole(1, 32), 32), v6: v.optional(whole(1, 128), 64) })),
  })),
  v.transform(({ ip }): KeyPart => ({ source: 'ip', ...ip })),
)

const byDigest = v.pipe(
  object(() => ({ digest: pattern('a part like "body:params.arguments"', /^body:\S+$/) })),
  v.transform(({ digest }): KeyPart => ({ source: 'body', name: digest.slice(5), digest: true })),
)

const isFunction = (input: unknown) => typeof input === 'function'
const byFunction = v.pipe(
  v.custom<KeySource & ((context: unknown) => unknown)>(isFunction),
  v.transform((read): KeyPart => ({ source: 'function', read })),
)

const part: v.GenericSchema<KeySource, KeyPart> = either(
  isFunction,
  either(
    isObject,
    byText,
    either((input) => Object.hasOwn(input as object, 'digest'), byAddress, byDigest),
  ) as v.GenericSchema<KeySource, KeyPart>,
  byFunction,
)

export const key: v.GenericSchema<Key, KeyPart[]> = list(part)

export const oneKey: v.GenericSchema<KeySource, KeyPart> = v.pipe(
  key as v.GenericSchema<KeySource, KeyPart[]>,
  v.check((parts) => parts.length === 1, 'a single key part'),
  v.transform((parts) => parts[0]!),
)

export type MissingKeyOptions<Context = unknown> =
  | 'share'
  | 'skip'
  | 'refuse'
  | { key: Key<Context> }

export const onMissingKey = either(
  isObject,
  v.picklist(['share', 'skip', 'refuse'], 'one of share, skip, refuse, { key }'),
  object(() => ({ key })),
)
export type OnMissingKey = v.InferOutput<typeof onMissingKey>

export type PlanOptions<Context = unknown> =
  | KeySource<Context>
  | { key: KeySource<Context>; table: string }

export const plan = either(
  (input) => isObject(input) && 'table' in input,
  v.pipe(
    oneKey,
    v.transform((key) => ({ key, table: undefined })),
  ),
  object(() => ({ key: oneKey, table: v.string('the name of a table') })),
)

export type PlanSource = v.InferOutput<typeof plan>
