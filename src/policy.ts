import * as v from 'valibot'
import type { Degraded, PolicyMode } from './decision.ts'
import type { Duration } from './duration.ts'
import { ConfigError } from './errors.ts'
import * as schema from './schema.ts'
import { tagOf } from './tag.ts'

/** One part of what a quota is counted by: the client's address, or a request header taken at its word. */
export type Key = 'ip' | { ip: { v4?: number; v6?: number } } | `header:${string}`

/** How a policy counts: lua/README.md, README.md "Choose an algorithm". */
export type Algorithm = 'fixed-window' | 'sliding-window' | 'sliding-log' | 'token-bucket' | 'gcra'

/** A named rule, as an operator writes it. */
export interface PolicyOptions {
  /** Up to 64 letters, digits, `_`, `.`, `-`; it stands in the `RateLimit` fields. */
  name: string
  /** Defaults to `'sliding-window'`. `'leaky-bucket'` is another name for `'gcra'`. */
  algorithm?: Algorithm | 'leaky-bucket'
  /** Size of the quota in units; a request costs one unless `cost` says otherwise. At least 1; times `window` in ms at most 2^53 / 3 (a million in 31 days fits). */
  limit: number
  /** The time window of the quota: `'10s'`, `'1m'`, `'1h'`, `'1d'`, or milliseconds. */
  window: Duration
  /** Room for a burst, in units: token-bucket (defaults to `limit`) and gcra (defaults to 1, evenly spaced) only. */
  burst?: number
  /** When a fixed window opens: with its first request (default), or at multiples of `window` since the epoch. */
  align?: 'first-request' | 'clock'
  /** Whose quota: one part or several. Defaults to `'ip'`: IPv4 by address, IPv6 by /64; `{ ip: { v6: 56 } }` sets prefix lengths. */
  key?: Key | Key[]
  /** Which requests: all that is given has to hold; in a list any one. Defaults to every request. */
  match?: { host?: string | string[]; path?: string | string[]; method?: string | string[] }
  /** The price of a request in units. Defaults to 1; 0 only looks. */
  cost?: number
  /** Defaults to `'enforce'`; `'shadow'` counts and tells, and never refuses. */
  mode?: PolicyMode
  /** The longest to wait for Redis. Defaults to the configuration's; of the policies a request meets, the shortest counts. */
  deadline?: Duration
  /**
   * What a request is told when Redis cannot answer: `'allow'` (default), `'deny'` (503), or `'local'`, what is left of a share of
   * the limit that this isolate counts by itself. Where policies differ, `'deny'` wins, then `'local'`.
   */
  onStoreError?: Degraded
  /** With `'local'`: how much of limit and burst one isolate may admit while Redis is away, above 0 and at most 1. Defaults to 0.25. */
  localShare?: number
}

/** A whole configuration, as an operator writes it. */
export interface ConfigOptions {
  /** Where allowed requests go: a URL (the variable `ORIGIN` overrides it), or `'zone'`, the origin of the zone whose route the Worker is on. */
  origin?: string
  /** The longest to wait for the origin's answer to begin, the time to upload the request's body included; then 504. Defaults to `'60s'`. */
  originTimeout?: Duration
  policies: PolicyOptions[]
  /** The longest a decision may take. Defaults to `'300ms'`; then `onStoreError` answers. */
  deadline?: Duration
  /** How clients are named in Redis: `'hashed'` (default; keyed SHA-256, no personal data), or `'plain'`, readable. */
  subjects?: 'hashed' | 'plain'
  /** Whether responses that Redis did not decide say so in a field `Sluice-Degraded: allow|deny|local`. Defaults to false. */
  degradedField?: boolean
}

/** A parsed part of a key. `v4` and `v6` are prefix lengths; header names are in lower case. */
export type KeyPart = { source: 'ip'; v4: number; v6: number } | { source: 'header'; name: string }

/** A parsed rule: defaults filled in, durations in milliseconds. */
export interface Policy {
  name: string
  /** Marks this policy's states in Redis; changes with name, algorithm, window and align. */
  tag: string
  algorithm: Algorithm
  limit: number
  windowMs: number
  burst: number
  align: 'first-request' | 'clock'
  key: KeyPart[]
  match: { host?: string[] | undefined; path?: string[] | undefined; method?: string[] | undefined }
  cost: number
  mode: PolicyMode
  deadlineMs: number
  onStoreError: Degraded
  localShare: number
}

/** A parsed configuration. */
export interface Config {
  origin: string | undefined
  originTimeoutMs: number
  policies: Policy[]
  subjects: 'hashed' | 'plain'
  degradedField: boolean
}

/**
 * Checks a configuration and hands it back, typed.
 * @throws {ConfigError} naming every problem: path, expected, got
 * @example
 * export default defineConfig({
 *   origin: 'https://origin.example.com',
 *   policies: [{ name: 'per-ip', limit: 100, window: '1m' }],
 * })
 */
export function defineConfig(options: ConfigOptions): ConfigOptions {
  parseConfig(options)
  return options
}

/**
 * Parses what came from outside into a configuration.
 * @throws {ConfigError} naming every problem: path, expected, got
 */
export function parseConfig(options: unknown): Config {
  const result = v.safeParse(schema.config, options)
  if (!result.success) {
    throw new ConfigError(
      result.issues.map((issue) => ({
        path: pathOf(issue.path ?? []),
        expected: issue.message,
        got: show(issue.path?.length ? issue.path.at(-1)!.value : issue.input),
      })),
    )
  }
  const { policies, originTimeout, deadline: defaultDeadline, ...rest } = result.output
  const parsed = policies.map(({ window, deadline = defaultDeadline, ...policy }): Policy => {
    const { name, limit, align = 'first-request' } = policy
    const algorithm = policy.algorithm === 'leaky-bucket' ? 'gcra' : policy.algorithm
    const burst = policy.burst ?? (algorithm === 'gcra' ? 1 : limit)
    const tag = tagOf(name, algorithm, window, align)
    return { ...policy, tag, algorithm, windowMs: window, burst, align, deadlineMs: deadline }
  })
  parsed.forEach(({ tag, name }, index) => {
    const other = parsed.findIndex((policy) => policy.tag === tag)
    if (other < index) {
      // One pair in four thousand million; two states under one tag would be read as each other.
      const expected = `a name whose hash differs from that of ${JSON.stringify(parsed[other]!.name)}`
      throw new ConfigError([{ path: `policies[${index}].name`, expected, got: show(name) }])
    }
  })
  return { origin: undefined, ...rest, originTimeoutMs: originTimeout, policies: parsed }
}

const pathOf = (path: readonly { key?: unknown }[]) =>
  path
    .map(({ key }) => (/^\d+$/.test(String(key)) ? `[${key}]` : `.${String(key)}`))
    .join('')
    .replace(/^\./, '') || 'config'

function show(value: unknown): string {
  if (value === undefined) return 'nothing'
  const text = typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? typeof value)
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}
