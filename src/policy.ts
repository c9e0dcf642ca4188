import * as v from 'valibot'
import type { Degraded, PolicyMode } from './decision.ts'
import { ConfigError } from './errors.ts'
import type { FindingCode } from './finding.ts'
import type { Algorithm, ConfigOptions } from './options.ts'
import type { Condition } from './schema/condition.ts'
import * as schema from './schema/config.ts'
import type { Cost } from './schema/cost.ts'
import type { ApiKeys, Jwt } from './schema/credentials.ts'
import type { Cors, HeaderSet } from './schema/headers.ts'
import type { KeyPart, OnMissingKey } from './schema/key.ts'
import { tagOf } from './tag.ts'

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
  onMissingKey: OnMissingKey
  match: Condition
  cost: Cost
  mode: PolicyMode
  deadlineMs: number
  onStoreError: Degraded
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
  caseSensitivePaths: boolean
  jwt: Jwt | undefined
  apiKeys: ApiKeys
  headers: HeaderSet[]
  cors: Cors | undefined
  /** The longest a decision may take, where no policy says otherwise. */
  deadlineMs: number
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
  const { policies, originTimeout, deadline: defaultDeadline, allow, deny, ...rest } = result.output
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
  return {
    origin: undefined,
    jwt: undefined,
    cors: undefined,
    ...rest,
    originTimeoutMs: originTimeout,
    deadlineMs: defaultDeadline,
    policies: parsed,
    allow: named('allow', allow),
    deny: named('deny', deny),
  }
}

const named = <E extends { name?: string | undefined }>(list: string, entries: E[]) =>
  entries.map((entry, index) => ({ ...entry, name: entry.name ?? `${list}[${index}]` }))

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
