/** The shape of a whole configuration, told once. */
import * as v from 'valibot'
import { findingCodes } from '../findings.ts'
import { tables } from './act.ts'
import { conditionFields, conditionOf } from './condition.ts'
import { apiKeys, jwt } from './credentials.ts'
import { cors, headers } from './headers.ts'
import { live } from './live.ts'
import { callers, policy } from './policy.ts'
import { list, name, object, oneOf, type Problem, pattern, timeout } from './shapes.ts'
import { shield } from './shield.ts'

const ORIGIN = 'a URL like "https://origin.example.com"'

/** Whether a configuration, or the variable ORIGIN, may name this as its origin. */
export const isOrigin = (input: unknown): input is string =>
  input === 'zone' ||
  (typeof input === 'string' && /^https?:\/\/[^\s?#@]+$/.test(input) && URL.canParse(input))

const listFields = {
  ...conditionFields,
  name: v.optional(name),
  accept: v.optional(list(oneOf(...findingCodes), 0), []),
}

const deny = v.pipe(
  object(listFields),
  v.transform((entry) => ({
    name: entry.name,
    condition: conditionOf(entry),
    accept: entry.accept,
  })),
)
const allow = v.pipe(
  object({ ...listFields, policies: v.optional(list(v.string('a name of a policy'))) }),
  v.transform((entry) => ({
    name: entry.name,
    condition: conditionOf(entry),
    accept: entry.accept,
    policies: entry.policies,
  })),
)

/** Of a namespace, or a database, whose variables end in it. */
const shortName = pattern('1 to 32 lower-case letters, digits and "-"', /^[a-z0-9-]{1,32}$/)

const shards = v.pipe(
  v.array(shortName, 'a list of names'),
  v.minLength(2, 'at least 2 names'),
  v.maxLength(64, 'at most 64 names'),
)

export const config = object(
  {
    origin: v.optional(v.custom<string>(isOrigin, `"zone" or ${ORIGIN}`)),
    originTimeout: v.optional(timeout, 60_000),
    // One call of the script takes 128 keys, and each policy may need one.
    policies: v.pipe(
      v.array(policy, 'a list of policies'),
      v.maxLength(128, 'at most 128 policies'),
    ),
    allow: v.optional(list(allow, 0), []),
    deny: v.optional(list(deny, 0), []),
    tables: v.optional(tables, {}),
    live: v.optional(live),
    api: v.optional(object({ callers })),
    caseSensitivePaths: v.optional(v.boolean('true or false'), false),
    jwt: v.optional(jwt),
    apiKeys: v.optional(apiKeys, {}),
    headers: v.optional(headers, 'draft-11'),
    cors: v.optional(cors),
    deadline: v.optional(timeout, 300),
    clock: v.optional(oneOf('store', 'edge'), 'store'),
    denialCache: v.optional(v.boolean('true or false'), true),
    shield: v.optional(shield),
    batching: v.optional(v.boolean('true or false'), true),
    shards: v.optional(shards),
    namespace: v.optional(shortName),
    hashKeys: v.optional(v.boolean('true or false'), true),
    degradedHeader: v.optional(v.boolean('true or false'), false),
    accept: v.optional(list(oneOf(...findingCodes), 0), []),
  },
  (input, problem) => {
    checkShards(input.shards, problem)
    if (!Array.isArray(input.policies)) return
    const names = input.policies.map((policy) => policy?.name)
    names.forEach((name, index) => {
      if (name !== undefined && names.indexOf(name) < index) {
        problem(['policies', index, 'name'], 'a name that no other policy has')
      }
    })
    checkKeys(input.policies, problem)
    checkReferences(input, names, problem)
  },
)

function checkShards(shards: unknown, problem: Problem) {
  if (!Array.isArray(shards)) return
  shards.forEach((name, index) => {
    if (shards.indexOf(name) < index) problem(['shards', index], 'a name that no other store has')
  })
}

/** What has a key of its own needs another for its penalty: beyond 128 the script would refuse every request that meets them all. */
function checkKeys(policies: { algorithm?: unknown; penalty?: unknown }[], problem: Problem) {
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

const DIGESTS = 'the SHA-256 of each API key in hex, as printed by: printf %s "$KEY" | sha256sum'

/** What one part of a configuration says of another. */
function checkReferences(input: Record<string, unknown>, names: string[], problem: Problem) {
  const policies = input.policies as {
    key?: unknown
    onMissingKey?: { key?: unknown }
    plan?: { key: unknown; table?: string }
  }[]
  const parts = (key: unknown) => (Array.isArray(key) ? key : [])
  policies.forEach((policy, index) => {
    const keys = {
      key: [...parts(policy?.key), ...parts(policy?.onMissingKey?.key)],
      plan: [policy?.plan?.key],
    }
    for (const [field, sources] of Object.entries(keys) as [string, { source?: string }[]][]) {
      if (input.jwt === undefined && sources.some((part) => part?.source === 'jwt')) {
        problem(['policies', index, field], 'a jwt in the configuration, to verify its claims by')
      }
    }
  })
  const shielded = parts((input.shield as { key?: unknown } | undefined)?.key)
  if (input.jwt === undefined && shielded.some((part) => part?.source === 'jwt')) {
    problem(['shield', 'key'], 'a jwt in the configuration, to verify its claims by')
  }
  policies.forEach((policy, index) => {
    const table = policy?.plan?.table
    if (table === undefined) return
    if (!Object.hasOwn((input.tables as object) ?? {}, table)) {
      problem(['policies', index, 'plan', 'table'], 'the name of a table in tables')
    } else if ((policy!.plan!.key as { source?: string })?.source === 'api-key') {
      const names = Object.keys(Object((input.tables as Record<string, unknown>)[table]))
      const other = names.findIndex((name) => !/^(sha256:)?[\da-f]{64}$/i.test(name))
      if (other >= 0) problem(['tables', table], `${DIGESTS}; entry ${other + 1} is not one`)
    }
  })
  if (!Array.isArray(input.allow)) return
  input.allow.forEach((entry, index) => {
    parts(entry?.policies).forEach((name, place) => {
      if (!names.includes(name)) {
        problem(['allow', index, 'policies', place], 'the name of a policy')
      }
    })
  })
}
