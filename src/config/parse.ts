import type * as v from 'valibot'
import type { CalendarUnit } from '../base/calendar.ts'
import type { Fallback, PolicyMode } from '../base/decision.ts'
import { ConfigError, type ConfigProblem } from '../base/errors.ts'
import { tagOf } from '../base/tag.ts'
import type { FindingCode } from './findings.ts'
import type { Algorithm, ConfigOptions } from './options.ts'
import type { Penalty, PlanSource, Statuses } from './schema/act.ts'
import { checked, shortened, show } from './schema/checked.ts'
import type { Condition } from './schema/condition.ts'
import * as schema from './schema/config.ts'
import type { Cost } from './schema/cost.ts'
import type { ApiKeys, Jwt } from './schema/credentials.ts'
import type { Cors, HeaderSet } from './schema/headers.ts'
import type { KeyPart, OnMissingKey } from './schema/key.ts'
import type { Lease } from './schema/lease.ts'
import { document, type Live } from './schema/live.ts'
import { LONGEST_MS } from './schema/policy.ts'
import type { Shield } from './schema/shield.ts'

/** A parsed rule: defaults filled in, durations in milliseconds. */
export interface Policy {
  name: string
  /** Marks this policy's states in Redis; changes with name, algorithm, window and align. */
  tag: string
  algorithm: Algorithm
  limit: number
  /** Of a calendar window the longest there is. */
  windowMs: number
  /** Whose periods the window is, instead. */
  calendar: { unit: CalendarUnit; timeZone: string } | undefined
  burst: number
  align: 'first-request' | 'clock'
  /** Sizes of the quota by plan, and what tells the plan. */
  plan:
    | (PlanSource & {
        limits: Record<string, number>
        /** Whether the burst was left out, and goes with the limit. */
        burstIsLimit: boolean
      })
    | undefined
  countOnly: Statuses[] | undefined
  penalty: (Penalty & { tag: string }) | undefined
  /** How many units an isolate may take at once. */
  lease: Lease | undefined
  key: KeyPart[]
  onMissingKey: OnMissingKey
  match: Condition
  cost: Cost
  mode: PolicyMode
  /** Whether the origin may be asked meanwhile. */
  check: 'before' | 'parallel'
  deadlineMs: number
  onStoreError: Fallback
  localShare: number
  accept: FindingCode[]
}

/** Requests that a list names. */
export interface ListEntry {
  name: string
  condition: Condition
  accept: FindingCode[]
}

/** A parsed configuration. */
export interface Config {
  origin: string | undefined
  originTimeoutMs: number
  policies: Policy[]
  /** `policies`: whose limits are skipped; `undefined`: all. */
  allow: (ListEntry & { policies: string[] | undefined })[]
  deny: ListEntry[]
  tables: Record<string, Record<string, string>>
  live: Live | undefined
  /** The policy on each caller of the decision API. */
  api: { callers: Policy } | undefined
  caseSensitivePaths: boolean
  jwt: Jwt | undefined
  apiKeys: ApiKeys
  headers: HeaderSet[]
  cors: Cors | undefined
  /** The longest a decision may take, where no policy says otherwise. */
  deadlineMs: number
  clock: 'store' | 'edge'
  /** Whether refusals that need no asking are not asked. */
  denialCache: boolean
  /** A first layer in front of the store. */
  shield: Shield | undefined
  /** Whether decisions of an isolate travel together. */
  batching: boolean
  /** Names of the databases that subjects are spread over; `undefined`: one, that has no name. */
  shards: string[] | undefined
  /** Part of every key in Redis. */
  namespace: string | undefined
  hashKeys: boolean
  degradedHeader: boolean
  /** Findings of the linter about the configuration itself that are intended. */
  accept: FindingCode[]
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
export function defineConfig<Context = unknown>(
  options: ConfigOptions<Context>,
): ConfigOptions<Context> {
  parseConfig(options)
  return options
}

/**
 * Parses what came from outside into a configuration.
 * @throws {ConfigError} naming every problem: path, expected, got
 */
export function parseConfig(options: unknown): Config {
  const {
    policies,
    originTimeout,
    deadline: defaultDeadline,
    allow,
    deny,
    tables,
    api,
    live,
    ...rest
  } = checkedConfig(schema.config, options)
  const parsed = policies.map((one) => policyOf(one, defaultDeadline))
  const tags = parsed.map(({ tag, penalty }) => [tag, penalty?.tag])
  parsed.forEach(({ tag, name, penalty }, index) => {
    const other = tags.findIndex(
      (others) => others.includes(tag) || (penalty && others.includes(penalty.tag)),
    )
    if (other < index || tag === penalty?.tag) {
      // One pair in four thousand million; two states under one tag would be read as each other.
      const expected = `a name whose hash differs from that of ${JSON.stringify(parsed[other]!.name)}`
      throw new ConfigError([{ path: `policies[${index}].name`, expected, got: show(name) }])
    }
  })
  return {
    origin: undefined,
    jwt: undefined,
    cors: undefined,
    namespace: undefined,
    shards: undefined,
    shield: undefined,
    ...rest,
    live: live && { ...live, key: live.key ?? liveKey(rest.namespace) },
    api: api && { callers: policyOf(api.callers, defaultDeadline) },
    originTimeoutMs: originTimeout,
    deadlineMs: defaultDeadline,
    policies: parsed,
    tables: Object.fromEntries(
      Object.entries(tables).map(([name, table]) => [
        name,
        parsed.some(({ plan }) => plan?.table === name && plan.key.source === 'api-key')
          ? bareDigests(table)
          : table,
      ]),
    ),
    allow: named('allow', allow),
    deny: named('deny', deny),
  }
}

const liveKey = (namespace: string | undefined) =>
  namespace ? `sluice:${namespace}:live` : 'sluice:live'

/** @param defaultDeadline ms */
function policyOf(
  options: v.InferOutput<typeof schema.config>['policies'][number],
  defaultDeadline: number,
): Policy {
  const { window, deadline = defaultDeadline, timeZone = 'UTC', plan, limits, ...policy } = options
  const { name, algorithm: written, limit, align = 'first-request', penalty } = policy
  const calendar = typeof window === 'string' ? { unit: window, timeZone } : undefined
  const spaced = written === 'gcra' || written === 'leaky-bucket'
  const algorithm = spaced ? 'token-bucket' : written
  const burst = policy.burst ?? (spaced ? 1 : limit)
  const tag = tagOf(name, algorithm, window, calendar ? timeZone : align)
  return {
    ...policy,
    tag,
    algorithm,
    windowMs: typeof window === 'string' ? LONGEST_MS[window] : window,
    calendar,
    burst,
    align,
    plan: plan && {
      ...plan,
      limits,
      burstIsLimit: policy.burst === undefined && !spaced,
    },
    countOnly: policy.countOnly,
    penalty: penalty && { ...penalty, tag: tagOf(name, 'penalty') },
    lease: policy.lease,
    // An isolate cannot count slots that others hold.
    onStoreError: policy.onStoreError ?? (algorithm === 'concurrency' ? 'allow' : 'local'),
    deadlineMs: deadline,
  }
}

/**
 * Parses a live document together with the configuration it goes into.
 * @throws {ConfigError} naming every problem: path, expected, got
 */
export function parseLive(input: unknown, options: object): Config {
  const fields = Object.entries(checkedConfig(document, input))
  return parseConfig({
    ...options,
    ...Object.fromEntries(fields.filter(([, value]) => value !== undefined)),
  })
}

function checkedConfig<T>(shape: v.GenericSchema<unknown, T>, input: unknown): T {
  const { output, problems } = checked(shape, input, 'config')
  if (problems) throw new ConfigError(problems.map((problem) => placed(problem, input)))
  return output
}

/** Fields that may hold a credential by mistake, with the problem that may concern them. */
const CREDENTIAL = /^((jwt|apiKeys)(?!\.(algorithms|from|issuer|audience|jwks))\b|.*SHA-256)/

/** Adds the name of the policy or the entry, and hides what may be a secret. */
function placed(problem: ConfigProblem, input: unknown): ConfigProblem {
  const [, list, index, field] =
    /^(policies|allow|deny)(?:\[(\d+)\])?\.?(.*)/.exec(problem.path) ?? []
  const entries = list && (input as Record<string, unknown>)[list]
  const { name } = Object(index && Array.isArray(entries) ? entries[Number(index)] : entries)
  const secret = problem.got !== 'nothing' && CREDENTIAL.test(`${problem.path} ${problem.expected}`)
  return {
    ...problem,
    ...(secret && { got: 'a value that is not shown' }),
    ...(typeof name === 'string' && field !== 'name' && { within: shortened(name) }),
  }
}

/** Names of a table that are digests, as keys are read: in lower case and bare. */
const bareDigests = (table: Record<string, string>) =>
  Object.fromEntries(
    Object.entries(table).map(([name, plan]) => [name.toLowerCase().replace('sha256:', ''), plan]),
  )

const named = <E extends { name?: string | undefined }>(list: string, entries: E[]) =>
  entries.map((entry, index) => ({ ...entry, name: entry.name ?? `${list}[${index}]` }))
