/** The input and output types of the linter's rules. */
import type { Finding, FindingCode } from '../core/config/findings.ts'
import type { ConfigOptions, ListOptions } from '../core/config/options.ts'
import type { Config, ListEntry, Policy } from '../core/config/parse.ts'
import type { KeyPart } from '../core/config/schema/key.ts'

/** A configuration, parsed and as written. Only the latter shows which fields are set and the paths of their values. */
export interface Facts {
  config: Config
  written: ConfigOptions
}

/** A finding. Its code is that of its rule (lint.ts), unless it has another. */
export type Found = Omit<Finding, 'code'> & { code?: FindingCode }

/** Finds one kind of mistake in a policy. `at` is the path of the policy. */
export type PolicyRule = (policy: Policy, at: string, facts: Facts) => Found | Found[]

/** An entry of `allow` or `deny`, with its path `at`. */
export interface Listed extends ListEntry {
  list: 'allow' | 'deny'
  at: string
  written: ListOptions
  /** For `allow`: the names of the skipped policies; `undefined` skips all. */
  policies?: string[] | undefined
}

export type ListRule = (entry: Listed) => Found | Found[]

export type ConfigRule = (facts: Facts) => Found | Found[]

export const listed = ({ config, written }: Facts): Listed[] =>
  (['allow', 'deny'] as const).flatMap((list) =>
    config[list].map((entry, index) => ({
      ...entry,
      list,
      at: `${list}[${index}]`,
      written: [written[list]].flat()[index]!,
    })),
  )

/** An entry in messages: `allow[0]`, or `allow[0] "office"`. */
export const titleOf = ({ at, name }: Listed) => (name === at ? at : `${at} "${name}"`)

export const writtenOf = (policy: Policy, { config, written }: Facts) =>
  written.policies[config.policies.indexOf(policy)]!

/** The largest limit that a request may have: by a plan or a claim, or `limit`. */
export const largestLimit = ({ limit, plan, claim }: Policy): number =>
  Math.max(limit, ...Object.values(plan?.limits ?? {}), claim?.max ?? 0)

/** The field that sets the capacity of a policy, and the capacity of its smallest plan, whose clients can never be admitted above it. */
export function smallestCapacity({ algorithm, limit, burst, burstIsLimit, plan }: Policy) {
  const field = algorithm === 'token-bucket' ? 'burst' : 'limit'
  const sizes = plan && (field === 'limit' || burstIsLimit) ? Object.values(plan.limits) : []
  const capacity = Math.min(field === 'burst' ? burst : limit, ...sizes)
  return { field, capacity, isOfPlan: sizes.includes(capacity) }
}

/** The parts of a policy's key and of its key in `onMissingKey`, each with its path. */
export function partsOf({ key, onMissingKey }: Policy, at: string): [KeyPart, string][] {
  const placed = (parts: KeyPart[], where: string) =>
    parts.map((part, index): [KeyPart, string] => [part, `${where}[${index}]`])
  return [
    ...placed(key, `${at}.key`),
    ...(typeof onMissingKey === 'object' ? placed(onMissingKey.key, `${at}.onMissingKey.key`) : []),
  ]
}
