import * as v from 'valibot'
import type { FieldSet } from '../../base/decision.ts'
import type { Duration } from '../../base/duration.ts'
import { isOrigin } from '../../base/host.ts'
import type { FeatureFields } from '../feature.ts'
import { checkNeeds } from '../needs.ts'
import { type OwnedSettings, opaque, settingOwners } from '../owners.ts'
import { type ClientAddress, type ClientAddressOptions, clientAddress } from './client-address.ts'
import { conditionFields, type MatchOptions } from './condition.ts'
import { checkAllow, checkCounting, checkKnown } from './config-checks.ts'
import { apiKeys } from './credentials.ts'
import type { KeySource } from './key.ts'
import { type Policy, type PolicyOptions, policy } from './policy.ts'
import { type Refusal, type RefusalInput, refusal } from './refusal.ts'
import { settingFields } from './settings.ts'
import {
  accept,
  flag,
  type Input,
  list,
  type Named,
  name,
  named,
  type Output,
  object,
  timeout,
} from './shapes.ts'

const listFields = () => ({
  ...conditionFields(),
  /** Name of the entry in answers and log lines: up to 64 letters, digits, `_`, `.` or `-`. Defaults to its position, such as `deny[0]`. */
  name: v.optional(name),
  /** Codes of linter findings to ignore for this entry, one or a list (docs/reference/linter.md). Defaults to none. */
  accept,
})
const allowFields = () => ({
  ...listFields(),
  /** Name or list of names of the policies that do not apply to these requests. Defaults to all policies. */
  policies: v.optional(list(v.string('the name of a policy'))),
})

/** An entry of `allow` or `deny`. It selects requests by the fields of `match`. */
export interface ListOptions extends Input<ReturnType<typeof listFields>>, Named {}
interface AllowOptions extends Input<ReturnType<typeof allowFields>>, Named {}

const deny = v.pipe(
  object(listFields),
  v.transform(({ name, accept, ...condition }) => ({ name, accept, condition })),
)
const allow = v.pipe(
  object(allowFields),
  v.transform(({ name, accept, policies, ...condition }) => ({
    name,
    accept,
    policies,
    condition,
  })),
)

/**
 * A set of rate limit headers: a draft of the IETF's RateLimit fields, GitHub's `x-ratelimit-*`, or `<prefix>Limit`, `<prefix>Remaining` and
 * `<prefix>Reset`, in seconds since the epoch (`epoch`), seconds from now (`delta`), or ISO 8601 (`iso`). A prefix has up to 64 letters,
 * digits, `_` or `-`.
 */
export type HeaderSet =
  | 'draft-11'
  | 'draft-7'
  | 'draft-6'
  | 'github'
  | { prefix: string; reset: 'epoch' | 'delta' | 'iso' }

/** Parses to a list. The feature headerSets checks and replaces the sets other than `draft-11`. */
const headers = v.pipe(
  v.custom<'off' | HeaderSet | HeaderSet[]>(() => true),
  v.transform(
    (input) =>
      (input === 'off' ? [] : Array.isArray(input) ? input : [input]) as ('draft-11' | FieldSet)[],
  ),
)

const pageOrigin = v.pipe(
  v.custom<string>(
    (input) =>
      typeof input === 'string' &&
      /^(\*|https?:\/\/[^\s\\/?#@,*]+)$/i.test(input) &&
      (input === '*' || URL.canParse(input)),
    'an origin like "https://app.example.com", or "*"',
  ),
  // Lower case, no default port, Punycode: the form that browsers send in `Origin`.
  v.transform((input) => (input === '*' ? input : new URL(input).origin)),
)

const corsFields = () => ({
  /** An origin or a list of origins whose pages may read the answers, such as `'https://app.example.com'`; or `'*'` for all. Required. */
  origins: list(pageOrigin),
  /** Lets pages read answers to requests with cookies. Cannot be combined with the origin `'*'`. Defaults to false. */
  credentials: v.optional(flag, false),
})

/** Access of web pages of other origins to refusals (CORS protocol of the Fetch standard). */
export interface CorsOptions extends Input<ReturnType<typeof corsFields>>, Named {}

const cors = named<CorsOptions>()(
  object(corsFields, ({ origins, credentials }, problem) => {
    if (credentials && origins?.includes('*'))
      problem(['origins'], 'no "*" together with credentials: true (browsers refuse it)')
  }),
)

/** A source of a key that is text or an address, and no function. */
export type PlainKey = Exclude<KeySource, (context: never) => unknown>

/** What the policies must hold, for every request and at every time: at most so many requests of one client pass. */
export interface ExpectOptions {
  /**
   * The requests that count: a condition with the fields of `match`. What it leaves out may have any value, since a client chooses it.
   * Defaults to every request.
   */
  request?: MatchOptions | undefined
  /** What counts as one client: a key part or a list of parts, as in `key` of a policy, without functions. Defaults to `'ip'`. */
  per?: PlainKey | PlainKey[] | undefined
  /** The most requests of one client that may pass in any interval of the length `in`: a whole number, at least 0. Required. */
  atMost: number
  /** Length of the interval: a duration such as `'1m'`. Required. */
  in: Duration
}

const configFields = <Context>() => ({
  /**
   * Destination of allowed requests: an `http:` or `https:` URL without query and credentials, or `'zone'` for the origin of the zone whose
   * route the Worker is on. If the URL has a path, requests stay below it. The variable `ORIGIN` overrides this field. A Worker that
   * proxies requires one of the two; there is no default.
   */
  origin: v.optional(
    v.custom<string>(isOrigin, '"zone" or a URL like "https://origin.example.com"'),
  ),
  /** Longest wait for the start of the origin's response, including the upload of the body; then the answer is 504. Less than 25 days. Defaults to `'60s'`. */
  originTimeout: v.optional(timeout, 60_000),
  /**
   * The policies: at most 128, because one call of the script takes 128 keys. A `sliding-log`, `concurrency` or
   * `distinct` policy with `penalty` or `overrides` counts twice. Required, but may be empty.
   */
  policies: v.array(
    policy as v.GenericSchema<PolicyOptions<Context>, v.InferOutput<typeof policy>>,
    'a list of policies',
  ),
  /** An entry or a list of entries for requests that skip all policies, or the policies named in the entry. Defaults to none. */
  allow: v.optional(list(named<AllowOptions>()(allow), 0), []),
  /** An entry or a list of entries for requests that are refused with 403. Takes precedence over `allow`. Defaults to none. */
  deny: v.optional(list(named<ListOptions>()(deny), 0), []),
  /** Where the address of the client comes from. Defaults to `CF-Connecting-IP` on Workers; required elsewhere if the address is used. */
  clientAddress: v.optional(clientAddress as v.GenericSchema<ClientAddressOptions, ClientAddress>),
  /** Makes paths case-sensitive, so that `/Login` does not match `/login`. Defaults to false, so that letter case does not evade a policy. */
  caseSensitivePaths: v.optional(flag, false),
  /** The source of `api-key`, and the list of known keys. Defaults to any key in `X-Api-Key` or as a bearer token. */
  apiKeys: v.optional(apiKeys, {}),
  /** The rate limit headers of responses: one set, a list of sets without a common header name, or `'off'`. Defaults to `'draft-11'`. */
  headers: v.optional(headers, 'draft-11'),
  /**
   * Lets web pages of other origins read the answers of the limiter. The CORS headers of the origin server are kept; the limiter adds its
   * own headers to the exposed ones. Defaults to no CORS headers.
   */
  cors: v.optional(cors),
  /**
   * The response to refused requests: `{ status, body, headers }`, or a function of the decision and the context of key functions. Not that of
   * the decision API. Defaults to a problem document, and to a page for browsers.
   */
  refusal: v.optional(refusal as v.GenericSchema<RefusalInput<Context>, Refusal>),
  ...settingFields(),
  /**
   * What the policies must hold: `{ request, per, atMost, in }`, or a list, which `sluice check`, `lint` and `sluice replay` check, and a limiter
   * ignores. Defaults to none.
   */
  // Its schema is in src/lint/expect, so that a Worker's bundle does not contain it.
  expect: v.optional(v.custom<ExpectOptions | ExpectOptions[]>(() => true)),
  /** Codes of linter findings about the configuration itself to ignore, one or a list (docs/reference/linter.md). Defaults to none. */
  accept,
  ...opaque<OwnedSettings<Context>>(v.optional(v.unknown()), settingOwners),
})
type ConfigFields = ReturnType<typeof configFields<unknown>>

/** A whole configuration. */
export interface ConfigOptions<Context = unknown>
  extends Input<ReturnType<typeof configFields<Context>>> {}

/** A parsed configuration. */
export interface Config extends ReturnType<typeof parsed> {}

/** A parsed entry of `allow` or `deny`. */
export type ListEntry = Config['deny'][number]

function parsed({ originTimeout, deadline, ...rest }: Output<ConfigFields>) {
  return {
    ...rest,
    policies: rest.policies.map(
      (policy): Policy => ({ ...policy, deadlineMs: policy.deadlineMs ?? deadline }),
    ),
    /** `policies` are the names of the skipped policies; `undefined` skips all. */
    allow: withNames('allow', rest.allow),
    deny: withNames('deny', rest.deny),
    originTimeoutMs: originTimeout,
    /** Longest duration of a decision for which no policy sets a deadline, ms. */
    deadlineMs: deadline,
  }
}

const withNames = <E extends { name: string | undefined }>(list: string, entries: E[]) =>
  entries.map((entry, index) => ({ ...entry, name: entry.name ?? `${list}[${index}]` }))

/** @param byDefault the features of the host; those of `use` replace them. Defaults to none */
export const configWith = (byDefault: readonly FeatureFields[] = []) =>
  v.pipe(
    object(configFields, (valid, problem, all) => {
      const checked = checkCounting(valid, problem, all, byDefault)
      if (!checked) return
      const { policies } = checked
      if (valid.use) checkNeeds(checked, valid.use, problem)
      const names = policies.map((policy) => policy?.name)
      checkAllow(names, all.allow, problem)
      if (valid.apiKeys) checkKnown(valid.apiKeys, [policies, valid.allow, valid.deny], problem)
    }),
    v.transform(parsed),
  )
