import * as v from 'valibot'
import type { StoreClient } from '../../base/commands.ts'
import type { CheckedConfig, FeatureFields } from '../feature.ts'
import { checkNeeds } from '../needs.ts'
import { parseOwned } from '../owned.ts'
import { type OwnedSettings, opaque, settingOwners } from '../owners.ts'
import { type ClientAddress, type ClientAddressOptions, clientAddress } from './client-address.ts'
import { conditionFields } from './condition.ts'
import {
  checkAllow,
  checkKeys,
  checkKnown,
  checkTags,
  checkUse,
  type Unchecked,
} from './config-checks.ts'
import { cors } from './cors.ts'
import { apiKeys } from './credentials.ts'
import { feature, madeBy } from './entries.ts'
import { expectations } from './expect.ts'
import { headers } from './headers.ts'
import { callers, type Policy, type PolicyOptions, policy } from './policy.ts'
import { type Refusal, type RefusalInput, refusal } from './refusal.ts'
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
  oneOf,
  shortName,
  timeout,
} from './shapes.ts'

/** Reports whether a value is valid as the `origin` of a configuration and as the variable `ORIGIN`. */
export const isOrigin = (input: unknown): input is string =>
  input === 'zone' ||
  (typeof input === 'string' && /^https?:\/\/[^\s?#@]+$/.test(input) && URL.canParse(input))

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

const apiFields = () => ({
  /**
   * A limit on the calls of each API token: `{ limit, window }`, with optional `algorithm` and `burst`. It needs its own call to Redis
   * for each request. It does not apply to forward-auth (`/_sluice/v1/auth`). Defaults to no limit.
   */
  callers,
})

/** Limits on the callers of the decision API (docs/reference/decision-api.md). */
export interface ApiOptions extends Input<ReturnType<typeof apiFields>>, Named {}

type ParsedPolicy = v.InferOutput<typeof policy>

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
   * The policies: at most 128, because one call of the script takes 128 keys. A `sliding-log` or `concurrency` policy with `penalty` or
   * `overrides` counts twice. Required, but may be empty.
   */
  policies: v.array(
    policy as v.GenericSchema<PolicyOptions<Context>, ParsedPolicy>,
    'a list of policies',
  ),
  /** An entry or a list of entries for requests that skip all policies, or the policies named in the entry. Defaults to none. */
  allow: v.optional(list(named<AllowOptions>()(allow), 0), []),
  /** An entry or a list of entries for requests that are refused with 403. Takes precedence over `allow`. Defaults to none. */
  deny: v.optional(list(named<ListOptions>()(deny), 0), []),
  /** Limits on the callers of the decision API: `{ callers }`. Defaults to no limits. */
  api: v.optional(named<ApiOptions>()(object(apiFields))),
  /**
   * Where the address of the client comes from. Required outside of Cloudflare Workers if a policy or list uses the address. Defaults to
   * `CF-Connecting-IP` on Cloudflare Workers.
   */
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
   * The response to refused requests: `{ status, body, headers }`, or a function of the decision and the context of key functions that
   * returns a `Response`. It does not apply to the decision API. Defaults to a problem document, and to a page for browsers.
   */
  refusal: v.optional(refusal as v.GenericSchema<RefusalInput<Context>, Refusal>),
  /** Longest duration of a decision. After it `onStoreError` of the policies answers. Less than 25 days. Defaults to `'300ms'`. */
  deadline: v.optional(timeout, 300),
  /**
   * The clock of decisions: `'store'` for the clock of Redis, or `'edge'` for the clock of the Worker. `'edge'` saves one billed command
   * per decision, and makes limits inexact by the differences between clocks (docs/explanation/guarantees.md). Defaults to `'store'`.
   */
  clock: v.optional(oneOf('store', 'edge'), 'store'),
  /** Lets an isolate repeat a refusal without a call to Redis, while the answer cannot have changed. Defaults to true. */
  denialCache: v.optional(flag, true),
  /** Lets an isolate send concurrent decisions to Redis in one call. Defaults to true. */
  batching: v.optional(flag, true),
  /**
   * What counts: the client that sends the commands to Redis, which is the result of `upstash()` from `sluice/upstash`, or Durable Objects
   * instead of Redis, the result of `durableObjects()` from `sluice/durable-objects`. Defaults to HTTP requests to
   * `UPSTASH_REDIS_REST_URL` with `UPSTASH_REDIS_REST_TOKEN`.
   */
  store: v.optional(
    madeBy<StoreClient>(
      'upstash',
      'connect',
      ", or of durableObjects() from 'sluice/durable-objects'",
    ),
  ),
  /**
   * What happens without a database, because its variables are missing or invalid. `'error'` answers each request with 500 and names the
   * variable; `sluice/node` fails when it starts. `'local'` lets each isolate count by itself, for previews. Defaults to `'error'`.
   */
  unconfigured: v.optional(oneOf('error', 'local'), 'error'),
  /**
   * A part of every key in Redis: 1 to 32 lower-case letters, digits or `-`. Applications that use one database, such as staging and
   * production, need different namespaces; otherwise their policies of the same name share counters. A change of the namespace resets
   * all quotas. Defaults to none.
   */
  namespace: v.optional(shortName),
  /** Hashes the client in Redis keys with HMAC-SHA-256, so that they contain no personal data. With false the keys are readable. Defaults to true. */
  hashKeys: v.optional(flag, true),
  /**
   * Features with parameters, such as `observe({ to: 'log' })` from `sluice/features`, each at most once (docs/reference/configuration.md). A
   * feature without parameters is on: its field is enough. Defaults to none.
   */
  use: v.optional(v.array(feature, 'a list of features'), []),
  /**
   * What the policies must hold: `{ request, per, atMost, in }`, or a list. `sluice check` and `lint` check it for every request,
   * `sluice replay` for a log; a limiter ignores it. Defaults to none.
   */
  expect: expectations,
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
  const withDeadline = (policy: ParsedPolicy): Policy => ({
    ...policy,
    deadlineMs: policy.deadlineMs ?? deadline,
  })
  const { policies, api } = rest
  return {
    ...rest,
    policies: policies.map(withDeadline),
    /** `policies` are the names of the skipped policies; `undefined` skips all. */
    allow: withNames('allow', rest.allow),
    deny: withNames('deny', rest.deny),
    api: api && { callers: withDeadline(api.callers) },
    originTimeoutMs: originTimeout,
    /** Longest duration of a decision for which no policy sets a deadline, ms. */
    deadlineMs: deadline,
  }
}

const withNames = <E extends { name: string | undefined }>(list: string, entries: E[]) =>
  entries.map((entry, index) => ({ ...entry, name: entry.name ?? `${list}[${index}]` }))

/** @param byDefault the features of the host besides those of `use` */
export const configWith = (byDefault: readonly FeatureFields[]) =>
  v.pipe(
    object(configFields, (valid, problem, all) => {
      const { use } = valid
      if (use) checkUse(use, problem)
      valid.store?.own?.check(valid, problem)
      const features = [...(use ?? []), ...byDefault]
      const owned = parseOwned(all, features, problem)
      // These checks include policies with problems of their own, as far as their fields are valid.
      if (Array.isArray(all.policies)) {
        const policies = all.policies as Unchecked
        const names = policies.map((policy) => policy?.name)
        names.forEach((name, index) => {
          if (name !== undefined && names.indexOf(name) < index) {
            problem(['policies', index, 'name'], 'a name that no other policy has')
          }
        })
        checkKeys(policies, problem)
        const checked: CheckedConfig = { ...valid, ...owned, policies }
        for (const one of features) one.check?.(checked, problem)
        if (use)
          checkNeeds(
            checked,
            use.map(({ name }) => name),
            problem,
          )
        checkAllow(names, all.allow, problem)
        if (valid.apiKeys) checkKnown(valid.apiKeys, [policies, valid.allow, valid.deny], problem)
      }
      if (valid.policies) checkTags(valid.policies, problem)
    }),
    v.transform(parsed),
  )

export const config = configWith([])
