import * as v from 'valibot'
import { conditionFields } from './condition.ts'
import { cors } from './cors.ts'
import { apiKeys, jwt } from './credentials.ts'
import { headers } from './headers.ts'
import type { KeyPart } from './key.ts'
import { live } from './live.ts'
import { tables } from './plan.ts'
import { callers, type Policy, type PolicyOptions, policy } from './policy.ts'
import {
  type AddProblem,
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
  pattern,
  timeout,
} from './shapes.ts'
import { type Shield, type ShieldOptions, shield } from './shield.ts'

/** Whether a configuration, or the variable ORIGIN, may name this as its origin. */
export const isOrigin = (input: unknown): input is string =>
  input === 'zone' ||
  (typeof input === 'string' && /^https?:\/\/[^\s?#@]+$/.test(input) && URL.canParse(input))

const listFields = {
  ...conditionFields,
  /** Names the entry in answers and logs. Defaults to its place, such as `deny[0]`. */
  name: v.optional(name),
  /** Findings of `npm run check` that are intended (docs/reference/linter.md). */
  accept,
}
const allowFields = {
  ...listFields,
  /** Names of the policies that do not apply. Defaults to all. */
  policies: v.optional(list(v.string('a name of a policy'))),
}

/** Requests that a list names, by the fields of `match`. */
export interface ListOptions extends Input<typeof listFields>, Named {}
interface AllowOptions extends Input<typeof allowFields>, Named {}

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

const apiFields = {
  /** Counted by token, in a call to Redis of its own, except when a proxy asks for its clients (`/_sluice/v1/auth`). */
  callers,
}

/** How often each caller of the decision API may call it (docs/reference/decision-api.md), with any request. */
export interface ApiOptions extends Input<typeof apiFields>, Named {}

/** A namespace, or a database, whose variables end in it. */
const shortName = pattern('1 to 32 lower-case letters, digits and "-"', /^[a-z0-9-]{1,32}$/)

type ParsedPolicy = v.InferOutput<typeof policy>

const configFields = <Context>() => ({
  /**
   * Where allowed requests go: a URL (the variable `ORIGIN` overrides it), or `'zone'`, the origin of the zone whose route the Worker is on.
   * Requests stay below the URL's path, if it has one.
   */
  origin: v.optional(
    v.custom<string>(isOrigin, '"zone" or a URL like "https://origin.example.com"'),
  ),
  /** The longest to wait for the origin's response to begin, including the upload of the request's body; then 504. Defaults to `'60s'`. */
  originTimeout: v.optional(timeout, 60_000),
  /** The rules; at most 128, since one call of the script takes 128 keys, and each policy may need one. */
  policies: v.pipe(
    v.array(policy as v.GenericSchema<PolicyOptions<Context>, ParsedPolicy>, 'a list of policies'),
    v.maxLength(128, 'at most 128 policies'),
  ),
  /** Requests that no policy applies to, or not those in `policies`. */
  allow: v.optional(list(named<AllowOptions>()(allow), 0), []),
  /** Requests that are answered 403, whatever `allow` says. */
  deny: v.optional(list(named<ListOptions>()(deny), 0), []),
  /** Values to look up, such as the plans of customers: `{ customers: { acme: 'pro' } }`. */
  tables: v.optional(tables, {}),
  /**
   * Reads a JSON document `{ policies, allow, deny, tables }`, each optional, in the background: it replaces those of this configuration
   * until it is deleted. An invalid one is reported, and the last valid one stays.
   */
  live: v.optional(live),
  /** Limits on callers of the decision API itself. Defaults to no limits. */
  api: v.optional(named<ApiOptions>()(object(apiFields))),
  /** Whether `/Login` is another path than `/login`. Defaults to false: a policy rather matches one request too many than is evaded. */
  caseSensitivePaths: v.optional(flag, false),
  /** How the tokens of `jwt:<claim>` are verified. */
  jwt: v.optional(jwt),
  /** Where `api-key` is found. */
  apiKeys: v.optional(apiKeys, {}),
  /** Which fields responses carry; several sets if no two use the same name. Defaults to `'draft-11'`. */
  headers: v.optional(headers, 'draft-11'),
  /** Lets pages of other origins read the limiter's own answers. An origin's own CORS fields stay; our fields are exposed in it. */
  cors: v.optional(cors),
  /** The longest a decision may take. Defaults to `'300ms'`; then `onStoreError` answers. */
  deadline: v.optional(timeout, 300),
  /** Whose clock decides: Redis' own, or `'edge'`, the Worker's, for a command less and with a bound (docs/explanation/guarantees.md). Defaults to `'store'`. */
  clock: v.optional(oneOf('store', 'edge'), 'store'),
  /** Whether an isolate answers again, without asking Redis, with refusals that cannot have changed since. Defaults to true. */
  denialCache: v.optional(flag, true),
  /** A rate limit of Cloudflare's own in front of Redis, for floods. Defaults to none. */
  shield: v.optional(shield as v.GenericSchema<ShieldOptions<Context>, Shield>),
  /** Whether decisions that an isolate makes at the same time share one call to Redis. Defaults to true. */
  batching: v.optional(flag, true),
  /**
   * Names of several databases that clients are spread over: 2 to 64, each 1 to 32 lower-case letters, digits and `-`. The variables of
   * `eu-1` are `UPSTASH_REDIS_REST_URL_EU_1` and `UPSTASH_REDIS_REST_TOKEN_EU_1`. The shard of a client depends on the names alone.
   * Defaults to one database, of `UPSTASH_REDIS_REST_URL`.
   */
  shards: v.optional(
    v.pipe(
      v.array(shortName, 'a list of names'),
      v.minLength(2, 'at least 2 names'),
      v.maxLength(64, 'at most 64 names'),
    ),
  ),
  /**
   * Part of every key in Redis: 1 to 32 lower-case letters, digits and `-`. Two applications, or staging and production, on one
   * database need one each, or their policies of the same name count together. A new namespace starts all quotas anew. Defaults to none.
   */
  namespace: v.optional(shortName),
  /** Whether keys in Redis name clients by a keyed SHA-256 (no personal data) instead of readable text. Defaults to true. */
  hashKeys: v.optional(flag, true),
  /** Whether responses that Redis did not decide carry a field `Sluice-Degraded: allow|deny|local`. Defaults to false. */
  degradedHeader: v.optional(flag, false),
  /** Findings of `npm run check` about the configuration itself that are intended (docs/reference/linter.md). */
  accept,
})
type ConfigFields = ReturnType<typeof configFields<unknown>>

/** A whole configuration. */
export interface ConfigOptions<Context = unknown>
  extends Input<ReturnType<typeof configFields<Context>>> {}

/** A parsed configuration. */
export interface Config extends ReturnType<typeof parsed> {}

/** Requests that a list names. */
export type ListEntry = Config['deny'][number]

function parsed({ originTimeout, deadline, ...rest }: Output<ConfigFields>) {
  const withDeadline = (policy: ParsedPolicy): Policy => ({
    ...policy,
    deadlineMs: policy.deadlineMs ?? deadline,
  })
  const { policies, api, live, namespace } = rest
  const liveKey = namespace ? `sluice:${namespace}:live` : 'sluice:live'
  return {
    ...rest,
    policies: policies.map(withDeadline),
    /** `policies`: whose limits are skipped; `undefined`: all. */
    allow: withNames('allow', rest.allow),
    deny: withNames('deny', rest.deny),
    tables: Object.fromEntries(
      Object.entries(rest.tables).map(([name, table]) => [
        name,
        policies.some(({ plan }) => plan?.table === name && plan.key.source === 'api-key')
          ? bareDigests(table)
          : table,
      ]),
    ),
    live: live && { ...live, key: live.key ?? liveKey },
    api: api && { callers: withDeadline(api.callers) },
    originTimeoutMs: originTimeout,
    /** The longest a decision may take, if no policy says otherwise. */
    deadlineMs: deadline,
  }
}

/** Names of a table that are digests, as keys are read: in lower case and bare. */
const bareDigests = (table: Record<string, string>) =>
  Object.fromEntries(
    Object.entries(table).map(([name, plan]) => [name.toLowerCase().replace('sha256:', ''), plan]),
  )

const withNames = <E extends { name: string | undefined }>(list: string, entries: E[]) =>
  entries.map((entry, index) => ({ ...entry, name: entry.name ?? `${list}[${index}]` }))

export const config = v.pipe(
  object(configFields(), (valid, problem, all) => {
    valid.shards?.forEach((name, index, shards) => {
      if (shards.indexOf(name) < index) problem(['shards', index], 'a name that no other store has')
    })
    // Policies with a problem of their own are compared to the others as far as they are valid.
    if (Array.isArray(all.policies)) {
      const policies = all.policies as Unchecked
      const names = policies.map((policy) => policy?.name)
      names.forEach((name, index) => {
        if (name !== undefined && names.indexOf(name) < index) {
          problem(['policies', index, 'name'], 'a name that no other policy has')
        }
      })
      checkKeys(policies, problem)
      checkReferences(policies, names, all as Partial<Output<ConfigFields>>, problem)
    }
    if (valid.policies) checkTags(valid.policies, problem)
  }),
  v.transform(parsed),
)

type Unchecked = (Partial<ParsedPolicy> | undefined)[]

/** A policy with a key of its own needs another for its penalty: beyond 128 the script would refuse every request that all apply to. */
function checkKeys(policies: Unchecked, problem: AddProblem) {
  const twice = policies.filter(
    (policy) =>
      policy?.penalty && (policy.algorithm === 'sliding-log' || policy.algorithm === 'concurrency'),
  )
  if (policies.length <= 128 && policies.length + twice.length > 128) {
    problem(
      ['policies'],
      'at most 128 policies, where sliding-log and concurrency with a penalty count twice',
    )
  }
}

const JWT = 'a jwt in the configuration, to verify its claims by'
const DIGESTS = 'the SHA-256 of each API key in hex, as printed by: printf %s "$KEY" | sha256sum'

/** Reports references from one part of a configuration to another that is missing. */
function checkReferences(
  policies: Unchecked,
  names: (string | undefined)[],
  { jwt, shield, tables, allow }: Partial<Output<ConfigFields>>,
  problem: AddProblem,
) {
  const needsJwt = (key: unknown) =>
    jwt === undefined && Array.isArray(key) && key.some((part?: KeyPart) => part?.source === 'jwt')
  policies.forEach((policy, index) => {
    const { key, onMissingKey, plan } = policy ?? {}
    if (needsJwt(key) || needsJwt(Object(onMissingKey).key))
      problem(['policies', index, 'key'], JWT)
    if (needsJwt([plan?.key])) problem(['policies', index, 'plan'], JWT)
    const table = plan?.table
    if (typeof table !== 'string') return
    if (!Object.hasOwn(Object(tables), table)) {
      problem(['policies', index, 'plan', 'table'], 'the name of a table in tables')
    } else if (plan?.key?.source === 'api-key') {
      const entries = Object.keys(Object(tables?.[table]))
      const other = entries.findIndex((name) => !/^(sha256:)?[\da-f]{64}$/i.test(name))
      if (other >= 0) problem(['tables', table], `${DIGESTS}; entry ${other + 1} is not one`)
    }
  })
  if (needsJwt(shield?.key)) problem(['shield', 'key'], JWT)
  if (!Array.isArray(allow)) return
  allow.forEach((entry, index) => {
    if (!Array.isArray(entry?.policies)) return
    entry.policies.forEach((name, place) => {
      if (!names.includes(name)) {
        problem(['allow', index, 'policies', place], 'the name of a policy')
      }
    })
  })
}

/** Two states under one tag would be read as each other. About one pair of names in four thousand million has the same tag. */
function checkTags(policies: ParsedPolicy[], problem: AddProblem) {
  const tags = policies.map(({ tag, penalty }) => [tag, penalty?.tag])
  policies.forEach(({ name, tag, penalty }, index) => {
    const other = tags.findIndex(
      (others) => others.includes(tag) || (penalty && others.includes(penalty.tag)),
    )
    const namesake = policies[other]!.name
    if (namesake !== name || tag === penalty?.tag) {
      problem(
        ['policies', index, 'name'],
        `a name whose hash differs from that of ${JSON.stringify(namesake)}`,
      )
    }
  })
}
