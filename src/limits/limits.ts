/** Limits by name and key, for code that has no request: a job, a tool call, a server action, a message of a WebSocket. */
import { ConfigError, type ConfigProblem } from '../core/base/errors.ts'
import type { Part } from '../core/base/part.ts'
import type { ConfigOptions, PolicyOptions } from '../core/config/options.ts'
import { show } from '../core/config/schema/checked.ts'
import { createLimiter } from '../core/create.ts'
import { operations } from '../core/decide/operate.ts'
import { type KeyValues, matchOf } from '../core/program/explicit-key.ts'
import { bans } from '../features/bans/index.ts'
import { concurrency } from '../features/concurrency/index.ts'
import { leases } from '../features/leases/index.ts'
import { overrides } from '../features/overrides/index.ts'
import { slidingLog } from '../features/sliding-log/index.ts'
import { turns } from '../features/turns/index.ts'
import { callsOf, Door, type Limits } from './door.ts'

export type {
  KeyValue,
  KeyValues,
  LimitDecision,
  LimitKey,
  LimitOptions,
  LimitRuntime,
  Limits,
  RefundOptions,
} from './door.ts'

/** The fields of a policy that need no request. */
const TERMS = [
  'algorithm',
  'limit',
  'window',
  'timeZone',
  'burst',
  'align',
  'cost',
  'mode',
  'wait',
  'penalty',
  'lease',
  'overrides',
  'deadline',
  'onStoreError',
  'localShare',
] as const

/** The terms of a limit. The fields are those of a policy (docs/reference/policies.md). */
export interface LimitTerms extends Pick<PolicyOptions, Exclude<(typeof TERMS)[number], 'cost'>> {
  /** Units of a call without `cost`: a whole number. Defaults to 1. */
  cost?: number
}

/** Where and how limits are counted. The fields are those of a configuration. */
export interface LimitsOptions
  extends Pick<
    ConfigOptions,
    | 'store'
    | 'namespace'
    | 'clock'
    | 'deadline'
    | 'batching'
    | 'denialCache'
    | 'headers'
    | 'unconfigured'
    | 'use'
  > {
  /** Variables and bindings, such as `env` of `cloudflare:workers`. Defaults to the variables of the process. A call may have its own. */
  env?: object
}

/**
 * Makes limits that are decided by name and key.
 * @throws {ConfigError} immediately, if the terms or an option are invalid
 * @example
 * const quota = limits({ invites: { limit: 20, window: '1d' } })
 * const { allowed, retryAfterMs } = await quota.limit('invites', user.id)
 */
export function limits<Name extends string>(
  terms: Record<Name, LimitTerms>,
  { env, ...options }: LimitsOptions = {},
): Limits<Name> {
  checkTerms(terms)
  const policies = Object.entries<LimitTerms>(terms).map(([name, own]) => ({
    name,
    key: 'global' as const,
    ...own,
  }))
  const byDefault = [bans(), concurrency(), leases(), overrides(), slidingLog(), turns()]
  const limiter = createLimiter({ ...options, policies }, { byDefault, lua: [operations] })
  const byName = new Map(limiter.config.policies.map((policy) => [policy.name, policy]))

  function find(name: string, key: KeyValues) {
    const policy = byName.get(name)
    if (!policy) return { path: 'name', expected: oneOf([...byName.keys()]), got: show(name) }
    const values = Array.isArray(key) ? key : [key]
    return matchOf(
      policy,
      values.map((value) => ['key', `${value}`] satisfies Part),
      undefined,
    )
  }
  return callsOf(new Door(limiter, find, { env }))
}

/** @throws {ConfigError} if terms have a field that reads a request */
function checkTerms(terms: Record<string, LimitTerms>): void {
  const names: readonly string[] = TERMS
  const problems = Object.entries(terms).flatMap(([name, own]) =>
    Object.entries(Object(own)).flatMap(([field, value]): ConfigProblem[] => {
      const isKnown = names.includes(field) && (field !== 'cost' || typeof value === 'number')
      if (isKnown || value === undefined) return []
      const expected = field === 'cost' ? 'a whole number' : 'nothing'
      const hint = `limits() decides without a request. Its terms are ${TERMS.join(', ')}`
      return [{ path: `${name}.${field}`, expected, got: show(value), hint }]
    }),
  )
  if (problems.length > 0) throw new ConfigError(problems)
}

const oneOf = (names: string[]) => names.map((name) => JSON.stringify(name)).join(' or ')
