/** What an operator writes in sluice.config.ts: types only. docs/configuration.md has an example of each. */
import type { Fallback, PolicyMode } from '../base/decision.ts'
import type { Duration } from '../base/duration.ts'
import type { FindingCode } from './findings.ts'

/**
 * One part of what a quota is counted by. `ip` is the address that Cloudflare saw, IPv4 by address and IPv6 by /64 unless told
 * otherwise; `country`, `asn`, `colo` are what Cloudflare knows of it. `jwt:<claim>` is a claim of a verified token, `api-key` a key
 * (see {@link ConfigOptions}). `path:<name>` is a parameter of the policy's path pattern. Header, cookie and query are taken at
 * the client's word. A function is given Hono's context.
 */
export type KeySource<Context = unknown> =
  | 'ip'
  | { ip: { v4?: number; v6?: number } }
  | 'path'
  | 'method'
  | 'host'
  | 'country'
  | 'asn'
  | 'colo'
  | 'api-key'
  | 'global'
  | `path:${string}`
  | `header:${string}`
  | `cookie:${string}`
  | `query:${string}`
  | `jwt:${string}`
  | ((context: Context) => KeyValue | Promise<KeyValue>)

/** What a key function finds; nothing, null or an empty text where the request lacks it. */
export type KeyValue = string | number | undefined | null

/** Whose quota: one part, or several that count together. */
export type Key<Context = unknown> = KeySource<Context> | KeySource<Context>[]

/** Which requests: all that is given has to hold; of a list, any one. */
export interface Match {
  /** `www.example.com`, or `*.example.com` for every host below. */
  host?: string | string[]
  /** `/login`, `/users/:id` (one segment), `/api/*` (`/api` and all below). Other spellings of a path are seen as the same. */
  path?: string | string[]
  /** `POST`. `GET` covers `HEAD`. */
  method?: string | string[]
  /** By name: `true` where the field is there at all, or what it may be, with `*` at either end for anything. Letter case does not matter. */
  header?: Record<string, true | string | string[]>
  /** ISO 3166-1 alpha-2, as Cloudflare tells it; `T1` is Tor, `XX` unknown. */
  country?: string | string[]
  /** Networks and addresses of clients: `203.0.113.0/24`, `2001:db8::/32`, `203.0.113.7`. */
  ip?: string | string[]
  /** Which of them not: requests that one of these matches. */
  not?: Match | Match[]
}

/** A cost for some requests. */
export type CostRule = Match & { cost: number }

/** The price of a request by what it is, or as a trusted proxy says. */
export interface CostOptions {
  /** A request header with the price, believed of a trusted proxy only: of requests with a token of `SLUICE_PROXY_TOKEN` in `Sluice-Token`. */
  header?: string
  /**
   * A field of the origin's answer with the price: what was taken beforehand, by `rules` or `otherwise`, is the most it can be, and the
   * rest is given back. Without the field all of it is kept.
   */
  response?: string
  /** The first that matches. */
  rules?: CostRule[]
  /** Where none does. Defaults to 1. */
  otherwise?: number
}

/** How a policy counts: lua/README.md, README.md "Choose an algorithm". */
export type Algorithm =
  | 'fixed-window'
  | 'sliding-window'
  | 'sliding-log'
  | 'token-bucket'
  | 'concurrency'

/** A status, `'4xx'`, or `'400-403'`. */
export type StatusRange = number | `${number}xx` | `${number}-${number}`

/** After `after` refusals by the policy within `within`: banned for `ban`, twice as long each further time, up to `max` (defaults to a day, or `ban` where that is longer). */
export interface PenaltyOptions {
  after: number
  within: Duration
  ban: Duration
  max?: Duration
}

/** A named rule. */
export interface PolicyOptions<Context = unknown> {
  /** Up to 64 letters, digits, `_`, `.`, `-`; it stands in the `RateLimit` fields. */
  name: string
  /** Defaults to `'sliding-window'`. `'gcra'` and `'leaky-bucket'` are `'token-bucket'` with a `burst` that defaults to 1. */
  algorithm?: Algorithm | 'gcra' | 'leaky-bucket'
  /** Size of the quota in units; a request costs one unless `cost` says otherwise. At least 1; times `window` in ms at most 2^53 / 3 (a million in 31 days fits). */
  limit: number
  /**
   * The time window of the quota: `'10s'`, `'1m'`, `'1h'`, `'1d'`, or milliseconds; for a fixed window also a `'day'`, a `'week'` (from
   * Monday on) or a `'month'` of the calendar; for concurrency the life of a slot that nobody releases.
   */
  window: Duration | 'day' | 'week' | 'month'
  /** Whose calendar: an IANA name such as `'Europe/Berlin'`. Defaults to `'UTC'`. */
  timeZone?: string
  /** Sizes of the quota by plan; `limit` is that of requests without one of these. */
  limits?: Record<string, number>
  /** What tells the plan: a part as of a key, its value looked up in a table of the configuration if one is named. */
  plan?: KeySource<Context> | { key: KeySource<Context>; table: string }
  /** Room for a burst, in units: token-bucket (defaults to `limit`), gcra and leaky-bucket (default to 1, evenly spaced) only. */
  burst?: number
  /** When a fixed window opens: with its first request (default), or at multiples of `window` since the epoch. */
  align?: 'first-request' | 'clock'
  /** Whose quota: one part or several. Defaults to `'ip'`. */
  key?: Key<Context>
  /**
   * What becomes of a request that lacks a part of the key: `'share'` (default), one quota for all that lack it; `'skip'`, the policy
   * does not meet it; `'refuse'`, 403; or another key to count it by, `{ key: 'ip' }`. A credential that is there but cannot be read
   * or verified is treated the same, except that `'skip'` counts it in one shared quota.
   */
  onMissingKey?: 'share' | 'skip' | 'refuse' | { key: Key<Context> }
  /** Which requests. Defaults to every request. */
  match?: Match
  /** The price of a request in units: a number, by rules of which the first that matches holds, or from a header that only a trusted proxy may set. Defaults to 1; 0 only looks. */
  cost?: number | CostRule[] | CostOptions
  /**
   * Which answers of the origin count: a status (`401`), a range (`'4xx'`, `'200-299'`), or several. A request takes its place first and
   * gets it back when its answer does not count. Defaults to all.
   */
  countOnly?: StatusRange | StatusRange[]
  /** What refusals lead to; or `'manual'`, bans that operators set and nobody else (docs/decision-api.md). Defaults to nothing. */
  penalty?: PenaltyOptions | 'manual'
  /**
   * Lets an isolate take up to `max` units (2 to 10,000) of a busy quota in one call, and spend them without asking for at most `ttl`
   * (at most a minute): docs/configuration.md, "Leases". Defaults to one call for each request.
   */
  lease?: { max: number; ttl: Duration }
  /** Defaults to `'enforce'`; `'shadow'` counts and tells, and never refuses. */
  mode?: PolicyMode
  /**
   * When Redis is asked: `'before'` the origin (default), or `'parallel'`, while the origin answers, which is told to the client only if the
   * request passes. Of the gateway only, for GET, HEAD and OPTIONS without a body, where all policies that the request meets say so and are
   * enforced; the origin then also sees the requests that are refused.
   */
  check?: 'before' | 'parallel'
  /** The longest to wait for Redis. Defaults to the configuration's; of the policies a request meets, the shortest counts. */
  deadline?: Duration
  /**
   * The answer when Redis cannot decide: `'local'`, this isolate counts by itself, over `localShare` of the limit and going on from what
   * Redis last said; `'deny'`, 503; `'allow'`, every request passes. Where policies differ, `'deny'` wins, then `'local'`. Defaults to
   * `'local'`, with concurrency to `'allow'`: an isolate cannot count slots that others hold.
   */
  onStoreError?: Fallback
  /** With `'local'`: the part of limit and burst that one isolate may admit by itself, above 0 and at most 1. Defaults to 1. */
  localShare?: number
  /** Findings of `npm run check` that are meant (docs/linter.md). */
  accept?: FindingCode | FindingCode[]
}

/** Requests that a list names, by the words of {@link Match}. */
export type ListOptions = Match & {
  /** Says which list it was. Defaults to its place, such as `deny[0]`. */
  name?: string
  /** Findings of `npm run check` that are meant (docs/linter.md). */
  accept?: FindingCode | FindingCode[]
}

/** Where a credential is read from, the first that is there: `bearer` is `Authorization: Bearer …`. */
export type CredentialSource =
  | 'bearer'
  | `header:${string}`
  | `cookie:${string}`
  | `query:${string}`

/** How tokens are verified whose claims are keys: JSON Web Tokens (RFC 7519). One of `secret` and `jwks`. */
export interface JwtOptions {
  /** The name of the variable (a secret of the Worker) that holds the secret of HS256, HS384 or HS512, at least 32 bytes. */
  secret?: string
  /** Where the issuer's public keys are (RFC 7517): fetched once an isolate, renewed in the background, kept where that fails. */
  jwks?: string
  /** Defaults to HS256 with `secret`; to RS256, PS256, ES256, Ed25519 and EdDSA with `jwks`. */
  algorithms?: string | string[]
  /** What `iss` has to be; any one. Defaults to whatever it is. */
  issuer?: string | string[]
  /** What `aud` has to name; any one. Defaults to whatever it is. */
  audience?: string | string[]
  /** Defaults to `'bearer'`. */
  from?: CredentialSource | CredentialSource[]
}

/** Where API keys are read from, and which are known. */
export interface ApiKeyOptions {
  /** Defaults to `['header:x-api-key', 'bearer']`. */
  from?: CredentialSource | CredentialSource[]
  /** The name of the variable that lists the SHA-256 (hex) of each key there is, between spaces or commas; any other is unverified. Defaults to none: any key is taken at its word. */
  known?: string
}

/**
 * Field sets of a response: `draft-11`, `draft-7`, `draft-6` of the IETF's RateLimit fields; GitHub's `x-ratelimit-*`; or
 * `<prefix>Limit`, `-Remaining`, `-Reset` with the reset as seconds since the epoch, seconds from now, or ISO 8601.
 */
export type HeaderSet =
  | 'draft-11'
  | 'draft-7'
  | 'draft-6'
  | 'github'
  | { prefix: string; reset: 'epoch' | 'delta' | 'iso' }

/** Who may read refusals from a page of another origin (the Fetch standard's CORS protocol). */
export interface CorsOptions {
  /** Origins of pages, such as `https://app.example.com`, or `*`. */
  origins: string | string[]
  /** Whether pages that send cookies may. Defaults to false. */
  credentials?: boolean
}

/** How often each caller of the decision API may call it (docs/decision-api.md), whatever they ask. */
export interface ApiOptions {
  /** Counted by token, in a call to Redis of its own, and not where a proxy asks for its clients (`/_sluice/v1/auth`). */
  callers: Pick<PolicyOptions, 'limit' | 'burst'> & {
    window: Duration
    /** Defaults to `'sliding-window'`. */
    algorithm?: Exclude<PolicyOptions['algorithm'], 'concurrency' | undefined>
  }
}

/** Where policies are read from while the Worker runs. */
export interface LiveOptions {
  /** The database, or a KV namespace by the name of its binding. */
  from: 'redis' | `kv:${string}`
  /** Defaults to `'sluice:live'`, with a namespace to `'sluice:<namespace>:live'`. */
  key?: string
  /** How often an isolate looks at most. Defaults to `'30s'`. */
  every?: Duration
}

/**
 * A first layer in front of Redis: a rate limit of Cloudflare's own, by its binding (`[[ratelimits]]` in wrangler.toml), which counts at
 * each location by itself, inexactly, and costs nothing. It is there for floods, far above what policies admit.
 */
export interface ShieldOptions<Context = unknown> {
  /** The name of the binding. */
  binding: string
  /** Requests in a period, as wrangler.toml says. */
  limit: number
  /** As wrangler.toml says. */
  period: '10s' | '60s' | '1m'
  /** Whom it counts by; nothing of the path. A request that lacks a part is not counted. Defaults to `'ip'`. */
  key?: Key<Context>
  /** Findings of `npm run check` that are meant (docs/linter.md). */
  accept?: FindingCode | FindingCode[]
}

/** A whole configuration. */
export interface ConfigOptions<Context = unknown> {
  /**
   * Where allowed requests go: a URL (the variable `ORIGIN` overrides it), or `'zone'`, the origin of the zone whose route the Worker is on.
   * Requests stay below the URL's path, if it has one.
   */
  origin?: string
  /** The longest to wait for the origin's answer to begin, the time to upload the request's body included; then 504. Defaults to `'60s'`. */
  originTimeout?: Duration
  policies: PolicyOptions<Context>[]
  /** Requests that no policy meets, or not those in `policies`. */
  allow?:
    | (ListOptions & { policies?: string | string[] })[]
    | (ListOptions & { policies?: string | string[] })
  /** Requests that are answered 403, whatever `allow` says. */
  deny?: ListOptions | ListOptions[]
  /** Values to look up, such as the plans of customers: `{ customers: { acme: 'pro' } }`. */
  tables?: Record<string, Record<string, string>>
  /**
   * Reads a JSON document `{ policies, allow, deny, tables }`, each optional, in the background: it stands for those of this configuration
   * until it is gone. One that is wrong is reported, and the last good one stays.
   */
  live?: LiveOptions
  /** Limits on callers of the decision API itself. Defaults to none. */
  api?: ApiOptions
  /** Whether `/Login` is another path than `/login`. Defaults to false: to meet a request too many is better than to be dodged. */
  caseSensitivePaths?: boolean
  /** How the tokens of `jwt:<claim>` are verified. */
  jwt?: JwtOptions
  /** Where `api-key` is found. */
  apiKeys?: ApiKeyOptions
  /** Which fields responses carry; several sets where no two use one name. Defaults to `'draft-11'`. */
  headers?: 'off' | HeaderSet | HeaderSet[]
  /** Lets pages of other origins read the limiter's own answers. What an origin allows is its own matter; our fields are exposed in it. */
  cors?: CorsOptions
  /** The longest a decision may take. Defaults to `'300ms'`; then `onStoreError` answers. */
  deadline?: Duration
  /** Whose clock decides: Redis' own, or `'edge'`, the Worker's, for a command less and with a bound (docs/operations.md). Defaults to `'store'`. */
  clock?: 'store' | 'edge'
  /** Whether refusals that this isolate has seen, and that nothing can have changed, are answered without asking Redis again. Defaults to true. */
  denialCache?: boolean
  /** A first layer in front of Redis, for floods. Defaults to none. */
  shield?: ShieldOptions<Context>
  /** Whether decisions of one isolate that are made at the same time travel in one call to Redis. Defaults to true. */
  batching?: boolean
  /**
   * Names of several databases that clients are spread over: 2 to 64, each 1 to 32 lower-case letters, digits and `-`. Those of
   * `eu-1` are reached by the variables `UPSTASH_REDIS_REST_URL_EU_1` and `UPSTASH_REDIS_REST_TOKEN_EU_1`. Where a client
   * is goes by the names alone. Defaults to one database, of `UPSTASH_REDIS_REST_URL`.
   */
  shards?: string[]
  /**
   * Part of every key in Redis: 1 to 32 lower-case letters, digits and `-`. Two applications, or staging and production, on one
   * database need one each, or their policies of the same name count together. Another one begins all quotas anew. Defaults to none.
   */
  namespace?: string
  /** Whether keys in Redis name clients by a keyed SHA-256 (no personal data) instead of readable text. Defaults to true. */
  hashKeys?: boolean
  /** Whether responses that Redis did not decide say so in a field `Sluice-Degraded: allow|deny|local`. Defaults to false. */
  degradedHeader?: boolean
  /** Findings of `npm run check` about the configuration itself that are intended (docs/linter.md). */
  accept?: FindingCode | FindingCode[]
}
